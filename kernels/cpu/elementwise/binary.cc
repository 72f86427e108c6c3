#include "kernels/cpu/elementwise/binary.h"

#include <algorithm>
#include <atomic>

#include "kernels/cpu/elementwise/broadcast.h"
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
      const int spread = SpreadOperand(b);
      if (spread >= 0) {
        RunSpread(ctx, b, spread);
      } else {
        RunFast(ctx, b);
      }
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

  static constexpr int64_t kShortRun = 16, kLine = 1024;

  // The operand that repeats each of its numbers over a short run, and all of them over the dim
  // before the last two; -1: neither. The groups of group normalisation are such.
  static int SpreadOperand(const Broadcast<2>& b) {
    const size_t rank = b.dims.size();
    if (rank < 3 || b.run() > kShortRun || b.run() * b.dims[rank - 2] > kLine) return -1;
    for (const int k : {0, 1}) {
      const auto &own = b.strides[k], &other = b.strides[1 - k];
      if (own[rank - 1] == 0 && own[rank - 2] == 1 && own[rank - 3] == 0 && other[rank - 1] == 1 &&
          other[rank - 2] == b.run())
        return k;
    }
    return -1;
  }

  // Makes one run of the last two dims: operand `k` is spread over them, once for all places where
  // it has the same numbers.
  void RunSpread(const KernelContext& ctx, Broadcast<2> b, int k) const {
    const int64_t repeats = b.run(), numbers = b.dims[b.dims.size() - 2];
    b.dims.pop_back();
    b.dims.back() *= repeats;
    for (auto& strides : b.strides) {
      strides.pop_back();
      strides.back() = 1;
    }
    const float *spread = ctx.in(k).as<float>(), *dense = ctx.in(1 - k).as<float>();
    float* y = ctx.out(0).as<float>();
    struct Line {
      int64_t from = -1;
      float values[kLine];
    };
    ForEachRun(
        b, ctx.pool,
        [=, this, line = Line()](int64_t at, const std::array<int64_t, 2>& in, int64_t n) mutable {
          if (line.from != in[k]) {
            line.from = in[k];
            for (int64_t i = 0; i < numbers; ++i)
              std::fill_n(line.values + i * repeats, repeats, spread[in[k] + i]);
          }
          const float* other = dense + in[1 - k];
          fast_.vectors(k == 0 ? line.values : other, k == 0 ? other : line.values, y + at,
                        static_cast<size_t>(n));
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
