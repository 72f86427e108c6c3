// Softmax and LogSoftmax along the last axis.
#include <cmath>
#include <limits>

#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/softmax_f32.h"

namespace floe::kernels {
namespace {

// Calls row(x, y, n) for every row.
template <class T, class Row>
void ForRows(const KernelContext& ctx, const Row& row) {
  const Shape& shape = ctx.in(0).shape;
  const int64_t n = shape.rank() == 0 ? 1 : shape.dim(shape.rank() - 1);
  if (n == 0) return;
  const T* x = ctx.in(0).as<T>();
  T* y = ctx.out(0).as<T>();
  constexpr int64_t kCost = 8;  // an element costs this many cheap ones
  ParallelRange(ctx.pool, shape.elements() / n, std::max<int64_t>(1, kElementGrain / (kCost * n)),
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) row(x + i * n, y + i * n, n);
                });
}

class SoftmaxF32Kernel : public Kernel {
 public:
  explicit SoftmaxF32Kernel(bool log) : row_(PickSoftmaxF32(log)) {}
  absl::Status Run(const KernelContext& ctx) const override {
    ForRows<float>(
        ctx, [this](const float* x, float* y, int64_t n) { row_(x, y, static_cast<size_t>(n)); });
    return absl::OkStatus();
  }

 private:
  SoftmaxF32 row_;
};

template <bool kLog, class T>
class SoftmaxKernel : public Kernel {
 public:
  absl::Status Run(const KernelContext& ctx) const override {
    using C = Compute<T>;
    ForRows<T>(ctx, [](const T* x, T* y, int64_t n) {
      C top = -std::numeric_limits<C>::infinity(), sum = 0;
      for (int64_t i = 0; i < n; ++i) top = static_cast<C>(x[i]) > top ? static_cast<C>(x[i]) : top;
      for (int64_t i = 0; i < n; ++i) sum += std::exp(static_cast<C>(x[i]) - top);
      for (int64_t i = 0; i < n; ++i) {
        const C shifted = static_cast<C>(x[i]) - top;
        y[i] = static_cast<T>(kLog ? shifted - std::log(sum) : std::exp(shifted) / sum);
      }
    });
    return absl::OkStatus();
  }
};

template <bool kLog, class T>
absl::StatusOr<std::unique_ptr<Kernel>> MakeSoftmax(const KernelArgs&) {
  if constexpr (std::is_same_v<T, float>)
    return std::make_unique<SoftmaxF32Kernel>(kLog);
  else
    return std::make_unique<SoftmaxKernel<kLog, T>>();
}

template <bool kLog, class... Ts>
bool RegisterSoftmax(const char* name, TypeList<Ts...>) {
  (KernelRegistrar(name, DeviceKind::kCpu, {kDTypeOf<Ts>}, &MakeSoftmax<kLog, Ts>), ...);
  return true;
}
const bool kSoftmaxRegistered[] = {RegisterSoftmax<false>("Softmax", Floats{}),
                                   RegisterSoftmax<true>("LogSoftmax", Floats{})};

}  // namespace
}  // namespace floe::kernels
