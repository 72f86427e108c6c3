// Softmax and LogSoftmax along the last axis.
#include <cmath>
#include <limits>

#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/normalize/softmax_f32.h"
#include "kernels/cpu/parallel.h"

namespace floe::kernels {
namespace {

// Calls softmax(x, y, rows, n) for all rows, in ranges.
template <class T, class Softmax>
void ForRows(const KernelContext& ctx, const Softmax& softmax) {
  const Shape& shape = ctx.in(0).shape;
  const int64_t n = shape.rank() == 0 ? 1 : shape.dim(shape.rank() - 1);
  if (n == 0) return;
  const T* x = ctx.in(0).as<T>();
  T* y = ctx.out(0).as<T>();
  constexpr int64_t kCost = 8;  // an element costs this many cheap ones
  ParallelRange(ctx.pool, shape.elements() / n, std::max<int64_t>(1, kElementGrain / (kCost * n)),
                [&](int64_t begin, int64_t end) {
                  softmax(x + begin * n, y + begin * n, static_cast<size_t>(end - begin),
                          static_cast<size_t>(n));
                });
}

class SoftmaxF32Kernel : public Kernel {
 public:
  explicit SoftmaxF32Kernel(bool log) : softmax_(PickSoftmaxF32(log)) {}
  absl::Status Run(const KernelContext& ctx) const override {
    ForRows<float>(ctx, softmax_);
    return absl::OkStatus();
  }

 private:
  SoftmaxF32 softmax_;
};

template <bool kLog, class T>
class SoftmaxKernel : public Kernel {
 public:
  absl::Status Run(const KernelContext& ctx) const override {
    ForRows<T>(ctx, [](const T* x, T* y, size_t rows, size_t n) {
      for (size_t i = 0; i < rows; ++i) OfRow(x + i * n, y + i * n, n);
    });
    return absl::OkStatus();
  }

 private:
  static void OfRow(const T* x, T* y, size_t n) {
    using C = Compute<T>;
    C top = -std::numeric_limits<C>::infinity(), sum = 0;
    for (size_t i = 0; i < n; ++i) top = static_cast<C>(x[i]) > top ? static_cast<C>(x[i]) : top;
    for (size_t i = 0; i < n; ++i) sum += std::exp(static_cast<C>(x[i]) - top);
    for (size_t i = 0; i < n; ++i) {
      const C shifted = static_cast<C>(x[i]) - top;
      y[i] = static_cast<T>(kLog ? shifted - std::log(sum) : std::exp(shifted) / sum);
    }
  }
};

template <bool kLog, class T>
absl::StatusOr<std::unique_ptr<Kernel>> MakeSoftmax(const KernelArgs&) {
  if constexpr (std::is_same_v<T, float>)
    return std::make_unique<SoftmaxF32Kernel>(kLog);
  else
    return std::make_unique<SoftmaxKernel<kLog, T>>();
}

FLOE_REGISTER_KERNELS(Softmax, kCpu, (MakeSoftmax<false, T>), Floats);
FLOE_REGISTER_KERNELS(LogSoftmax, kCpu, (MakeSoftmax<true, T>), Floats);

}  // namespace
}  // namespace floe::kernels
