// FusedBatchNorm: y = (x - mean) * scale / sqrt(variance + epsilon) + offset, with given or with
// the batch's own statistics.
#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/elementwise/binary_f32.h"
#include "kernels/cpu/parallel.h"

namespace floe::kernels {
namespace {

// x as [batch, channels, inner]: inner is 1 when the channels come last.
struct Extents {
  int64_t batch, channels, inner;
};

Extents ExtentsOf(const Shape& x, bool channels_first) {
  const int64_t channels = x.dim(channels_first ? 1 : x.rank() - 1);
  int64_t inner = 1;
  for (int i = 2; channels_first && i < x.rank(); ++i) inner *= x.dim(i);
  const int64_t all = x.elements();
  return {all == 0 ? 0 : all / (channels * inner), channels, inner};
}

template <class T, class P>
class BatchNormKernel : public Kernel {
 public:
  explicit BatchNormKernel(const Attrs& attrs)
      : epsilon_(attrs.Float("epsilon", 1e-4f)),
        average_factor_(attrs.Float("exponential_avg_factor", 1.0f)),
        training_(attrs.Bool("is_training", true)),
        channels_first_(attrs.String("data_format", "NHWC").substr(0, 2) == "NC"),
        subtract_(FindBinaryF32("Sub")),
        multiply_(FindBinaryF32("Mul")),
        add_(FindBinaryF32("Add")) {}

  int64_t ScratchBytes(absl::Span<const Shape> inputs, absl::Span<const Shape>) const override {
    return 3 * static_cast<int64_t>(sizeof(P)) * inputs[1].elements();
  }

  absl::Status Run(const KernelContext& ctx) const override {
    const Extents e = ExtentsOf(ctx.in(0).shape, channels_first_);
    FLOE_RETURN_IF_ERROR(CheckStatistics(ctx, e.channels));
    P* factor = reinterpret_cast<P*>(ctx.scratch);
    P *mean = factor + e.channels, *variance = mean + e.channels;
    if (training_) {
      Measure(ctx, e, mean, variance);
    } else {
      std::copy_n(ctx.in(3).as<P>(), e.channels, mean);
      std::copy_n(ctx.in(4).as<P>(), e.channels, variance);
    }
    StoreStatistics(ctx, e, mean, variance);
    for (int64_t c = 0; c < e.channels; ++c) {
      factor[c] = ctx.in(1).as<P>()[c] / std::sqrt(variance[c] + static_cast<P>(epsilon_));
    }
    Normalize(ctx, e, factor, mean);
    return absl::OkStatus();
  }

 private:
  // Inference does not see the sizes of all inputs of every model.
  absl::Status CheckStatistics(const KernelContext& ctx, int64_t channels) const {
    const int read = training_ && average_factor_ == 1.0f ? 3 : 5;
    for (int i = 1; i < read; ++i) {
      if (ctx.in(i).elements() != channels)
        return absl::InvalidArgumentError(absl::StrCat("input ", i, " has shape ",
                                                       ctx.in(i).shape.ToString(), " for ",
                                                       channels, " channels"));
    }
    return absl::OkStatus();
  }

  void Measure(const KernelContext& ctx, const Extents& e, P* mean, P* variance) const {
    const T* x = ctx.in(0).as<T>();
    const double count = static_cast<double>(e.batch * e.inner);
    for (int64_t c = 0; c < e.channels; ++c) {
      const auto sum = [&](auto term) {
        double total = 0;
        for (int64_t b = 0; b < e.batch; ++b) {
          for (int64_t i = 0; i < e.inner; ++i) {
            total += term(static_cast<double>(
                static_cast<Compute<T>>(x[(b * e.channels + c) * e.inner + i])));
          }
        }
        return total;
      };
      const double m = sum([](double v) { return v; }) / count;
      mean[c] = static_cast<P>(m);
      variance[c] = static_cast<P>(sum([m](double v) { return (v - m) * (v - m); }) / count);
    }
  }

  // Outputs 1 and 2: running averages; 3 and 4: the statistics themselves.
  void StoreStatistics(const KernelContext& ctx, const Extents& e, const P* mean,
                       const P* variance) const {
    const double count = static_cast<double>(e.batch * e.inner);
    const bool nothing = ctx.in(0).elements() == 0;
    const P unbiased = static_cast<P>(training_ && count > 1 ? count / (count - 1) : 1.0);
    for (size_t k = 1; k < ctx.outputs.size(); ++k) {
      if (ctx.outputs[k].data == nullptr) continue;
      P* out = ctx.outputs[k].as<P>();
      if (k == 5) {
        out[0] = 0;
        continue;
      }
      if (nothing) {  // as TensorFlow has it, in training or not
        std::fill_n(out, e.channels, k <= 2 ? std::numeric_limits<P>::quiet_NaN() : P(0));
        continue;
      }
      const P* from = k % 2 == 1 ? mean : variance;
      const P scale = k == 2 ? unbiased : P(1);
      const bool blends = training_ && k <= 2 && average_factor_ != 1.0f;
      for (int64_t c = 0; c < e.channels; ++c) {
        const P fresh = from[c] * scale;
        const P factor = static_cast<P>(average_factor_);
        out[c] = blends
                     ? (P(1) - factor) * ctx.in(static_cast<int>(k) + 2).as<P>()[c] + factor * fresh
                     : fresh;
      }
    }
  }

  void Normalize(const KernelContext& ctx, const Extents& e, const P* factor, const P* mean) const {
    const T* x = ctx.in(0).as<T>();
    T* y = ctx.out(0).as<T>();
    const P* offset = ctx.in(2).as<P>();
    const int64_t width = e.channels * e.inner;
    if (width == 0) return;
    ParallelRange(ctx.pool, e.batch, std::max<int64_t>(1, kElementGrain / width),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t b = begin; b < end; ++b) {
                      if constexpr (std::is_same_v<T, float>) {
                        NormalizeF32(x + b * width, y + b * width, e, factor, mean, offset);
                      } else {
                        for (int64_t k = 0; k < width; ++k) {
                          const int64_t c = k / e.inner;
                          const P v = static_cast<P>(static_cast<Compute<T>>(x[b * width + k]));
                          y[b * width + k] = static_cast<T>((v - mean[c]) * factor[c] + offset[c]);
                        }
                      }
                    }
                  });
  }

  void NormalizeF32(const float* x, float* y, const Extents& e, const float* factor,
                    const float* mean, const float* offset) const {
    if (e.inner == 1) {
      const auto n = static_cast<size_t>(e.channels);
      subtract_.vectors(x, mean, y, n);
      multiply_.vectors(y, factor, y, n);
      add_.vectors(y, offset, y, n);
      return;
    }
    const auto n = static_cast<size_t>(e.inner);
    for (int64_t c = 0; c < e.channels; ++c) {
      float* to = y + c * e.inner;
      subtract_.scalar_b(x + c * e.inner, mean + c, to, n);
      multiply_.scalar_b(to, factor + c, to, n);
      add_.scalar_b(to, offset + c, to, n);
    }
  }

  float epsilon_, average_factor_;
  bool training_, channels_first_;
  BinaryF32Set subtract_, multiply_, add_;
};

template <class T, class P>
absl::StatusOr<std::unique_ptr<Kernel>> Make(const KernelArgs& args) {
  const DType statistics = args.inputs[1].type.dtype;
  if (statistics != kDTypeOf<P>) {
    return absl::UnimplementedError(
        absl::StrCat(args.node.op->name, " with a scale of ", DTypeName(statistics)));
  }
  return std::make_unique<BatchNormKernel<T, P>>(args.node.attrs);
}

bool RegisterAll() {
  for (const char* name : {"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"}) {
    KernelRegistrar(name, DeviceKind::kCpu, {DType::kFloat32}, &Make<float, float>);
    KernelRegistrar(name, DeviceKind::kCpu, {DType::kFloat16}, &Make<Half, float>);
    KernelRegistrar(name, DeviceKind::kCpu, {DType::kBFloat16}, &Make<BFloat16, float>);
    KernelRegistrar(name, DeviceKind::kCpu, {DType::kFloat64}, &Make<double, double>);
  }
  return true;
}
const bool kBatchNormRegistered = RegisterAll();

}  // namespace
}  // namespace floe::kernels
