#include "kernels/cpu/binary.h"

#include <atomic>

#include "kernels/cpu/broadcast.h"
#include "kernels/elementwise.h"

namespace floe::kernels {
namespace {

class BinaryKernel : public ElementwiseKernel {
 public:
  BinaryKernel(BinaryLoop loop, const BinaryF32Set& fast, const char* failure, bool channel_bias)
      : loop_(loop), fast_(fast), failure_(failure), channel_bias_(channel_bias) {}

  absl::Status Run(const KernelContext& ctx) const override {
    Shape b_shape = ctx.in(1).shape;
    if (channel_bias_) {
      for (int i = 2; i < ctx.in(0).shape.rank(); ++i) b_shape.push_back(1);
    }
    const auto b = MakeBroadcast<2>(ctx.out(0).shape, {&ctx.in(0).shape, &b_shape});
    if (fast_.vectors != nullptr) {
      RunFast(ctx, b);
      return absl::OkStatus();
    }
    const size_t in_size = ElementBytes(ctx.in(0).dtype), out_size = DTypeSize(ctx.out(0).dtype);
    const int64_t step_a = b.strides[0].back(), step_b = b.strides[1].back();
    std::atomic<bool> failed{false};
    ForEachRun(b, ctx.pool, [&](int64_t at, const std::array<int64_t, 2>& in, int64_t n) {
      const bool fine = loop_(ctx.in(0).as<char>() + in[0] * in_size, step_a,
                              ctx.in(1).as<char>() + in[1] * in_size, step_b,
                              ctx.out(0).as<char>() + at * out_size, n);
      if (!fine) failed.store(true, std::memory_order_relaxed);
    });
    return failed.load() ? absl::InvalidArgumentError(failure_) : absl::OkStatus();
  }

  bool RunTile(absl::Span<const TileOperand> in, void* out, int64_t n) const override {
    if (fast_.vectors == nullptr)
      return loop_(in[0].data, in[0].step, in[1].data, in[1].step, out, n);
    Fast(in[0].step, in[1].step)(static_cast<const float*>(in[0].data),
                                 static_cast<const float*>(in[1].data), static_cast<float*>(out),
                                 static_cast<size_t>(n));
    return true;
  }
  const char* Failure() const override { return failure_; }

 private:
  BinaryF32 Fast(int64_t step_a, int64_t step_b) const {
    return step_a == 0 ? fast_.scalar_a : step_b == 0 ? fast_.scalar_b : fast_.vectors;
  }

  void RunFast(const KernelContext& ctx, const Broadcast<2>& b) const {
    const BinaryF32 f = Fast(b.strides[0].back(), b.strides[1].back());
    const float *pa = ctx.in(0).as<float>(), *pb = ctx.in(1).as<float>();
    float* y = ctx.out(0).as<float>();
    ForEachRun(b, ctx.pool, [&](int64_t at, const std::array<int64_t, 2>& in, int64_t n) {
      f(pa + in[0], pb + in[1], y + at, static_cast<size_t>(n));
    });
  }

  BinaryLoop loop_;
  BinaryF32Set fast_;
  const char* failure_;
  bool channel_bias_;
};

}  // namespace

std::unique_ptr<Kernel> MakeBinaryKernel(BinaryLoop loop, const BinaryF32Set& fast,
                                         const char* failure, bool channel_bias) {
  return std::make_unique<BinaryKernel>(loop, fast, failure, channel_bias);
}

}  // namespace floe::kernels
