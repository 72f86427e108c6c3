// Cumsum, Cumprod and CumulativeLogsumexp.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/status.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/move/grid_copy.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/widened.h"

namespace floe::kernels {
namespace {

struct ScanOptions {
  bool exclusive, reverse;
};

enum class Joined : uint8_t { kSum, kProduct, kLogSumExp };

// What comes before the first element.
template <Joined kJoined, class C>
C Neutral() {
  if constexpr (kJoined == Joined::kLogSumExp) return -std::numeric_limits<C>::infinity();
  return kJoined == Joined::kProduct ? C(1) : C(0);
}
template <Joined kJoined, class C>
C Join(C a, C b) {
  if constexpr (kJoined == Joined::kLogSumExp) {
    const C most = a < b ? b : a, least = b < a ? b : a;
    return most == Neutral<kJoined, C>() ? most : std::log1p(std::exp(least - most)) + most;
  } else {
    return kJoined == Joined::kProduct ? WrapMul(a, b) : WrapAdd(a, b);
  }
}

template <Joined kJoined, class T>
absl::Status Scan(const KernelContext& ctx, const ScanOptions& options) {
  using C = Compute<T>;
  const Shape& shape = ctx.in(0).shape;
  FLOE_ASSIGN_OR_RETURN(const int64_t axis_value, ReadInt(ctx.in(1)));
  FLOE_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(axis_value, shape.rank()));
  int64_t inner = 1;
  for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape.dim(i);
  const int64_t n = shape.dim(axis);
  if (shape.elements() == 0) return absl::OkStatus();
  const T* x = ctx.in(0).as<T>();
  T* y = ctx.out(0).as<T>();
  ParallelRange(ctx.pool, shape.elements() / n, std::max<int64_t>(1, kElementGrain / n),
                [&](int64_t begin, int64_t end) {
                  for (int64_t line = begin; line < end; ++line) {
                    const int64_t base = line / inner * n * inner + line % inner;
                    C total = Neutral<kJoined, C>();
                    for (int64_t i = 0; i < n; ++i) {
                      const int64_t at = base + (options.reverse ? n - 1 - i : i) * inner;
                      const C value = static_cast<C>(x[at]);
                      // TensorFlow keeps the total of 16-bit floats in their own type.
                      const C next = static_cast<C>(static_cast<T>(Join<kJoined>(total, value)));
                      y[at] = static_cast<T>(options.exclusive ? total : next);
                      total = next;
                    }
                  }
                });
  return absl::OkStatus();
}
template <Joined kJoined, class T>
absl::StatusOr<std::unique_ptr<Kernel>> MakeScan(const KernelArgs& args) {
  const ScanOptions options{args.node.attrs.Bool("exclusive"), args.node.attrs.Bool("reverse")};
  return FromFunction(
      [options](const KernelContext& ctx) { return Scan<kJoined, T>(ctx, options); });
}

FLOE_REGISTER_WIDENED(Cumsum, (MakeScan<Joined::kSum, T>), kWrap, WideNumbers);
FLOE_REGISTER_WIDENED(Cumprod, (MakeScan<Joined::kProduct, T>), kWrap, WideNumbers);
FLOE_REGISTER_KERNELS(CumulativeLogsumexp, kCpu, (MakeScan<Joined::kLogSumExp, T>), Floats);

}  // namespace
}  // namespace floe::kernels
