// Select and SelectV2: elements of one of two inputs, by a third of bools.
#include <type_traits>

#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/elementwise/broadcast.h"
#include "kernels/elementwise.h"

namespace floe::kernels {
namespace {

// out[i] = c[i * sc] ? x[i * sx] : y[i * sy], steps 0 or 1
template <class T>
void PickRun(const bool* c, int64_t sc, const T* x, int64_t sx, const T* y, int64_t sy, T* out,
             int64_t n) {
  if constexpr (std::is_unsigned_v<T>) {  // without branches, which conditions at random mislead
    WithConstantSteps(
        [&](auto step_c, auto step_x, auto step_y) {
#ifndef __clang__
#pragma GCC ivdep  // `out` is x or y, or apart from them
#endif
          for (int64_t i = 0; i < n; ++i) {
            const auto mask = static_cast<T>(-static_cast<T>(c[i * step_c]));
            out[i] =
                static_cast<T>((x[i * step_x] & mask) | (y[i * step_y] & static_cast<T>(~mask)));
          }
        },
        sc, sx, sy);
  } else {
    for (int64_t i = 0; i < n; ++i) out[i] = c[i * sc] ? x[i * sx] : y[i * sy];
  }
}

class SelectKernel : public ElementwiseKernel {
 public:
  // `along_rows`: a vector of conditions lies along dim 0.
  SelectKernel(bool along_rows, DType dtype) : along_rows_(along_rows), dtype_(dtype) {}

  absl::Status Run(const KernelContext& ctx) const override {
    ForElement(ctx.out(0).dtype, [&](auto element) { Pick<decltype(element)>(ctx); });
    return absl::OkStatus();
  }

  bool RunTile(absl::Span<const TileOperand> in, void* out, int64_t n) const override {
    ForElement(dtype_, [&](auto element) {
      using T = decltype(element);
      PickRun(static_cast<const bool*>(in[0].data), in[0].step, static_cast<const T*>(in[1].data),
              in[1].step, static_cast<const T*>(in[2].data), in[2].step, static_cast<T*>(out), n);
    });
    return true;
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
      PickRun(c + in[0], sc, x + in[1], sx, y + in[2], sy, out + at, n);
    });
  }

  const bool along_rows_;
  const DType dtype_;
};

template <bool kAlongRows>
absl::StatusOr<std::unique_ptr<Kernel>> Make(const KernelArgs& args) {
  return std::make_unique<SelectKernel>(kAlongRows, args.inputs[1].type.dtype);
}
FLOE_REGISTER_KERNEL(Select, kCpu, Make<true>);
FLOE_REGISTER_KERNEL(SelectV2, kCpu, Make<false>);

}  // namespace
}  // namespace floe::kernels
