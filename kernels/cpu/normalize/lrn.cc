// LRN: x / (bias + alpha * sum of squares of the channels around)^beta.
#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/elementwise/binary_f32.h"
#include "kernels/cpu/elementwise/unary_f32.h"
#include "kernels/cpu/run_watch.h"
#include "model/half.h"

namespace floe::kernels {
namespace {

constexpr int64_t kBlockFloats = 4096;

struct LrnFunctions {
  UnaryF32 square = FindUnaryF32("Square"), root = FindUnaryF32("Sqrt"),
           inverse_root = FindUnaryF32("Rsqrt"), inverse = FindUnaryF32("Reciprocal");
  BinaryF32Set add = FindBinaryF32("Add"), multiply = FindBinaryF32("Mul");
};

template <class T>
class LrnKernel final : public Kernel {
 public:
  explicit LrnKernel(const Attrs& attrs)
      : radius_(std::clamp<int64_t>(attrs.Int("depth_radius", 5), -1, INT32_MAX)),
        bias_(attrs.Float("bias", 1)),
        alpha_(attrs.Float("alpha", 1)),
        beta_(attrs.Float("beta", 0.5f)) {}

  absl::Status Run(const KernelContext& ctx) const override {
    const Shape& shape = ctx.in(0).shape;
    if (shape.elements() == 0) return absl::OkStatus();
    const int64_t depth = shape.dim(3), radius = std::min(radius_, depth - 1);
    const Block block{depth, std::max<int64_t>(radius, 0), radius};
    const int64_t most = std::max<int64_t>(1, kBlockFloats / block.wide());
    return WatchedRange(ctx.pool, shape.elements() / depth,
                        std::max<int64_t>(1, kElementGrain / block.wide()),
                        [&](int64_t begin, int64_t end) {
                          Lines lines;
                          for (; begin < end; begin += most) {
                            const int64_t pixels = std::min(most, end - begin);
                            Scale(block, ctx.in(0).as<T>() + begin * depth, pixels, &lines);
                            Multiply(block, ctx.in(0).as<T>() + begin * depth, pixels, lines.scale,
                                     ctx.out(0).as<T>() + begin * depth);
                          }
                        });
  }

 private:
  // Pixels side by side, each with zeros around its channels. radius -1: no channel counts.
  struct Block {
    int64_t depth, zeros, radius;
    int64_t wide() const { return depth + 2 * zeros; }
  };

  struct Lines {
    std::vector<float> squares, doubled, scale;
  };

  // scale[i] = the sum of squares[i] to squares[i + window - 1], by sums of 1, 2, 4 and so on.
  void SumWindows(int64_t window, Lines* l) const {
    const auto all = static_cast<int64_t>(l->squares.size()),
               n = static_cast<int64_t>(l->scale.size());
    l->doubled.resize(l->squares.size());
    int64_t done = 0;
    for (int64_t length = 1; done < window; length *= 2) {
      if ((window & length) != 0) {
        f_.add.vectors(l->scale.data(), l->squares.data() + done, l->scale.data(), n);
        done += length;
      }
      if (done == window) return;
      f_.add.vectors(l->squares.data(), l->squares.data() + length, l->doubled.data(),
                     all - 2 * length + 1);
      l->squares.swap(l->doubled);
    }
  }

  // What each channel is multiplied by; those of pixel p begin at p * wide().
  void Scale(const Block& block, const T* x, int64_t pixels, Lines* l) const {
    const int64_t wide = block.wide(), n = pixels * wide;
    l->squares.assign(n + 2 * block.zeros, 0.0f);
    l->scale.assign(n, 0.0f);
    for (int64_t p = 0; p < pixels; ++p, x += block.depth)
      std::copy_n(x, block.depth, l->squares.data() + p * wide + block.zeros);
    f_.square(l->squares.data(), l->squares.data(), l->squares.size(), 0);
    SumWindows(2 * block.radius + 1, l);
    float* const sums = l->scale.data();
    f_.multiply.scalar_b(sums, &alpha_, sums, n);
    f_.add.scalar_b(sums, &bias_, sums, n);
    if (beta_ == 0.5f) {
      f_.inverse_root(sums, sums, n, 0);
    } else if (beta_ == 0.75f) {
      f_.root(sums, sums, n, 0);
      f_.root(sums, l->squares.data(), n, 0);
      f_.multiply.vectors(sums, l->squares.data(), sums, n);
      f_.inverse(sums, sums, n, 0);
    } else if (beta_ == 1) {
      f_.inverse(sums, sums, n, 0);
    } else {
      for (int64_t i = 0; i < n; ++i) sums[i] = std::pow(sums[i], -beta_);
    }
  }

  void Multiply(const Block& block, const T* x, int64_t pixels, const std::vector<float>& scale,
                T* y) const {
    for (int64_t p = 0; p < pixels; ++p, x += block.depth, y += block.depth) {
      const float* by = scale.data() + p * block.wide();
      if constexpr (std::is_same_v<T, float>) {
        f_.multiply.vectors(x, by, y, block.depth);
      } else {
        for (int64_t c = 0; c < block.depth; ++c)
          y[c] = static_cast<T>(static_cast<float>(x[c]) * by[c]);
      }
    }
  }

  const LrnFunctions f_;
  const int64_t radius_;
  const float bias_, alpha_, beta_;
};

template <class T>
absl::StatusOr<std::unique_ptr<Kernel>> MakeLrn(const KernelArgs& args) {
  return std::make_unique<LrnKernel<T>>(args.node.attrs);
}
FLOE_REGISTER_KERNELS(LRN, kCpu, MakeLrn<T>, TypeList<float, Half, BFloat16>);

}  // namespace
}  // namespace floe::kernels
