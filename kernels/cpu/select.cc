// Select and SelectV2: elements of one of two inputs, by a third of bools.
#include "kernels/cpu/broadcast.h"
#include "kernels/cpu/dtypes.h"

namespace floe::kernels {
namespace {

class SelectKernel : public Kernel {
 public:
  // `along_rows`: a vector of conditions lies along dim 0.
  explicit SelectKernel(bool along_rows) : along_rows_(along_rows) {}

  absl::Status Run(const KernelContext& ctx) const override {
    ForElement(ctx.out(0).dtype, [&](auto element) { Pick<decltype(element)>(ctx); });
    return absl::OkStatus();
  }

 private:
  template <class T>
  void Pick(const KernelContext& ctx) const {
    Shape condition = ctx.in(0).shape;
    while (along_rows_ && condition.rank() > 0 && condition.rank() < ctx.out(0).shape.rank())
      condition.push_back(1);
    const auto b =
        MakeBroadcast<3>(ctx.out(0).shape, {&condition, &ctx.in(1).shape, &ctx.in(2).shape});
    const bool* c = ctx.in(0).as<bool>();
    const T *x = ctx.in(1).as<T>(), *y = ctx.in(2).as<T>();
    T* out = ctx.out(0).as<T>();
    const int64_t sc = b.strides[0].back(), sx = b.strides[1].back(), sy = b.strides[2].back();
    ForEachRun(b, ctx.pool, [&](int64_t at, const std::array<int64_t, 3>& in, int64_t n) {
      for (int64_t i = 0; i < n; ++i)
        out[at + i] = c[in[0] + i * sc] ? x[in[1] + i * sx] : y[in[2] + i * sy];
    });
  }

  bool along_rows_;
};

template <bool kAlongRows>
absl::StatusOr<std::unique_ptr<Kernel>> Make(const KernelArgs&) {
  return std::make_unique<SelectKernel>(kAlongRows);
}
FLOE_REGISTER_KERNEL(Select, kCpu, Make<true>);
FLOE_REGISTER_KERNEL(SelectV2, kCpu, Make<false>);

}  // namespace
}  // namespace floe::kernels
