// ArgMax and ArgMin: the first place of the largest or smallest element along one axis.
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/move/grid_copy.h"
#include "kernels/cpu/parallel.h"

namespace floe::kernels {
namespace {

template <bool kLargest, class T>
class ArgKernel : public Kernel {
 public:
  absl::Status Run(const KernelContext& ctx) const override {
    const Shape& in = ctx.in(0).shape;
    FLOE_ASSIGN_OR_RETURN(const int64_t axis, ReadInt(ctx.in(1)));
    FLOE_ASSIGN_OR_RETURN(const int along, NormalizeAxis(axis, in.rank()));
    const int64_t n = in.dim(along);
    if (n == 0)
      return absl::InvalidArgumentError(
          absl::StrCat("axis ", along, " of ", in.ToString(), " is empty"));
    int64_t inner = 1;
    for (int i = along + 1; i < in.rank(); ++i) inner *= in.dim(i);
    const T* x = ctx.in(0).as<T>();
    ParallelRange(ctx.pool, ctx.out(0).elements(), std::max<int64_t>(1, kElementGrain / n),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) {
                      Store(ctx.out(0), i, Best(x + i / inner * n * inner + i % inner, n, inner));
                    }
                  });
    return absl::OkStatus();
  }

 private:
  // Begins at place 0 with a finite bound, so that NaN is never chosen, as in TensorFlow.
  static int64_t Best(const T* x, int64_t n, int64_t stride) {
    using C = Compute<T>;
    int64_t best = 0;
    C so_far = kLargest ? std::numeric_limits<C>::lowest() : std::numeric_limits<C>::max();
    for (int64_t k = 0; k < n; ++k) {
      const auto value = static_cast<C>(x[k * stride]);
      if (!(kLargest ? value > so_far : value < so_far)) continue;
      best = k;
      so_far = value;
    }
    return best;
  }
  static void Store(const TensorView& out, int64_t at, int64_t value) {
    switch (out.dtype) {
      case DType::kInt32:
        out.as<int32_t>()[at] = static_cast<int32_t>(value);
        break;
      case DType::kInt16:
        out.as<int16_t>()[at] = static_cast<int16_t>(value);
        break;
      case DType::kUInt16:
        out.as<uint16_t>()[at] = static_cast<uint16_t>(value);
        break;
      default:
        out.as<int64_t>()[at] = value;
    }
  }
};

template <bool kLargest, class T>
absl::StatusOr<std::unique_ptr<Kernel>> Make(const KernelArgs&) {
  return std::make_unique<ArgKernel<kLargest, T>>();
}

using Ordered = TypeList<float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t,
                         uint16_t, uint32_t, uint64_t, bool>;
FLOE_REGISTER_KERNELS(ArgMax, kCpu, (Make<true, T>), Ordered);
FLOE_REGISTER_KERNELS(ArgMin, kCpu, (Make<false, T>), Ordered);

}  // namespace
}  // namespace floe::kernels
