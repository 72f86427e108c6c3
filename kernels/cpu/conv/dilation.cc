// Dilation2D: the largest sum of the elements under a window and the window's own numbers.
#include "model/ops/dilation.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/run_watch.h"
#include "model/ops/window.h"

namespace floe::kernels {
namespace {

// One spatial dim of the input.
struct Line {
  int64_t size, taps, stride, rate, before;
};

template <class T>
absl::Status Dilate(const KernelContext& ctx, const ops::Dilation& window) {
  using C = Compute<T>;
  const TensorView &in = ctx.in(0), &filter = ctx.in(1), &out = ctx.out(0);
  const int64_t depth = in.shape.dim(3);
  if (out.elements() == 0) return absl::OkStatus();
  Line lines[2];
  for (int i = 0; i < 2; ++i) {
    const int64_t taps = filter.shape.dim(i), size = in.shape.dim(1 + i);
    lines[i] = {size, taps, window.strides[i], window.rates[i],
                ops::PadLow(size, out.shape.dim(1 + i), ops::WindowSpan(taps, window.rates[i]),
                            window.strides[i], {.same = window.same})};
  }
  const int64_t width = out.shape.dim(2), rows = out.elements() / (width * depth);
  return WatchedRange(ctx.pool, rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t height = out.shape.dim(1), batch = row / height,
                    top = row % height * lines[0].stride - lines[0].before;
      const T* const image = in.as<T>() + batch * lines[0].size * lines[1].size * depth;
      T* const to = out.as<T>() + row * width * depth;
      for (int64_t place = 0; place < width * depth; ++place) {
        const int64_t left = place / depth * lines[1].stride - lines[1].before, d = place % depth;
        C most = Lowest<T>();
        for (int64_t h = 0; h < lines[0].taps; ++h) {
          const int64_t y = top + h * lines[0].rate;
          if (y < 0 || y >= lines[0].size) continue;
          for (int64_t w = 0; w < lines[1].taps; ++w) {
            const int64_t x = left + w * lines[1].rate;
            if (x < 0 || x >= lines[1].size) continue;
            const C a = static_cast<C>(image[(y * lines[1].size + x) * depth + d]);
            const C b = static_cast<C>(filter.as<T>()[(h * lines[1].taps + w) * depth + d]);
            const C sum = static_cast<C>(static_cast<T>(WrapAdd(a, b)));
            if (sum > most) most = sum;
          }
        }
        to[place] = static_cast<T>(most);
      }
    }
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeDilation(const KernelArgs& args) {
  FLOE_ASSIGN_OR_RETURN(const ops::Dilation window, ops::DilationOf(args.node.attrs));
  return FromFunction([window](const KernelContext& ctx) {
    absl::Status status =
        absl::UnimplementedError(absl::StrCat("dilation of ", DTypeName(ctx.in(0).dtype)));
    ForDType(ctx.in(0).dtype, Reals{}, [&](auto t) { status = Dilate<decltype(t)>(ctx, window); });
    return status;
  });
}
FLOE_REGISTER_KERNEL(Dilation2D, kCpu, MakeDilation);

}  // namespace
}  // namespace floe::kernels
