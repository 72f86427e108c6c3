// MatrixInverse and MatrixDeterminant by elimination with the largest pivot of the column, in
// float64 or complex128.
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/status.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/plain_sum.h"

namespace floe::kernels {
namespace {

// Brings the n x n matrix `a` (row-major) to the identity while doing the same to `b`; returns the
// determinant, 0 when singular.
template <class W>
W Eliminate(BudgetVector<W>* a, BudgetVector<W>* b, int64_t n) {
  W determinant = 1;
  for (int64_t c = 0; c < n; ++c) {
    int64_t pivot = c;
    for (int64_t r = c + 1; r < n; ++r) {
      if (std::abs((*a)[r * n + c]) > std::abs((*a)[pivot * n + c])) pivot = r;
    }
    const W value = (*a)[pivot * n + c];
    if (value == W(0)) return W(0);
    if (pivot != c) {
      determinant = -determinant;
      for (int64_t k = 0; k < n; ++k) {
        std::swap((*a)[pivot * n + k], (*a)[c * n + k]);
        std::swap((*b)[pivot * n + k], (*b)[c * n + k]);
      }
    }
    determinant *= value;
    for (int64_t k = 0; k < n; ++k) {
      (*a)[c * n + k] /= value;
      (*b)[c * n + k] /= value;
    }
    for (int64_t r = 0; r < n; ++r) {
      const W factor = (*a)[r * n + c];
      if (r == c || factor == W(0)) continue;
      for (int64_t k = 0; k < n; ++k) {
        (*a)[r * n + k] -= factor * (*a)[c * n + k];
        (*b)[r * n + k] -= factor * (*b)[c * n + k];
      }
    }
  }
  return determinant;
}

template <class T>
absl::Status Solve(const KernelContext& ctx, bool inverse, bool adjoint) {
  const Shape& shape = ctx.in(0).shape;
  const int64_t n = shape.dim(shape.rank() - 1);
  if (shape.dim(shape.rank() - 2) != n)
    return absl::InvalidArgumentError(
        absl::StrCat("matrices of ", shape.ToString(), " are not square"));
  if (ctx.out(0).elements() == 0) return absl::OkStatus();
  using W = PlainSum<T>;
  BudgetVector<W> a(n * n), b(n * n);
  int64_t count = 1;
  for (int i = 0; i + 2 < shape.rank(); ++i) count *= shape.dim(i);
  for (int64_t m = 0; m < count; ++m) {
    const T* x = ctx.in(0).as<T>() + m * n * n;
    for (int64_t i = 0; i < n * n; ++i) {
      a[i] = PlainWide(adjoint ? x[i % n * n + i / n] : x[i]);
      if constexpr (kIsComplex<T>) {
        if (adjoint) a[i] = std::conj(a[i]);
      }
      b[i] = i / n == i % n ? 1 : 0;
    }
    const W determinant = Eliminate(&a, &b, n);
    if (!inverse) {
      ctx.out(0).as<T>()[m] = PlainNarrow<T>(determinant);
      continue;
    }
    if (determinant == W(0)) return absl::InvalidArgumentError("the matrix is not invertible");
    for (int64_t i = 0; i < n * n; ++i) ctx.out(0).as<T>()[m * n * n + i] = PlainNarrow<T>(b[i]);
  }
  return absl::OkStatus();
}

template <bool kInverse, class T>
absl::StatusOr<std::unique_ptr<Kernel>> Make(const KernelArgs& args) {
  const bool adjoint = args.node.attrs.Bool("adjoint");
  return FromFunction(
      [adjoint](const KernelContext& ctx) { return Solve<T>(ctx, kInverse, adjoint); });
}
template <bool kInverse, class... Ts>
bool Register(const char* name, TypeList<Ts...>) {
  (KernelRegistrar(name, DeviceKind::kCpu, {kDTypeOf<Ts>}, &Make<kInverse, Ts>), ...);
  return true;
}
const bool kRegistered[] = {
    Register<true>("MatrixInverse", FloatsAndComplexes{}),
    Register<false>("MatrixDeterminant", FloatsAndComplexes{}),
};

}  // namespace
}  // namespace floe::kernels
