// TridiagonalMatMul: a matrix of three diagonals times matrices.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/run_watch.h"

namespace floe::kernels {
namespace {

// Inputs: the diagonals above, in and below the middle, each [..., 1, m], of which the last element
// of the first and the first of the last mean nothing; [..., m, n].
template <class T>
absl::Status Product(const KernelContext& ctx) {
  const Shape& shape = ctx.in(3).shape;
  const int rank = shape.rank();
  const int64_t m = rank < 2 ? 0 : shape.dim(rank - 2), n = rank < 2 ? 0 : shape.dim(rank - 1);
  Shape diagonal = shape;
  if (rank >= 2) {
    diagonal.set_dim(rank - 2, 1);
    diagonal.set_dim(rank - 1, m);
  }
  for (int i = 0; i < 3; ++i) {
    if (rank < 2 || ctx.in(i).shape != diagonal)
      return absl::InvalidArgumentError(absl::StrCat("a diagonal of shape ",
                                                     ctx.in(i).shape.ToString(),
                                                     " for matrices of shape ", shape.ToString()));
  }
  if (shape.elements() == 0) return absl::OkStatus();
  return WatchedRange(ctx.pool, shape.elements() / (m * n), 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const T* const above = ctx.in(0).as<T>() + b * m;
      const T* const middle = ctx.in(1).as<T>() + b * m;
      const T* const below = ctx.in(2).as<T>() + b * m;
      const T* const x = ctx.in(3).as<T>() + b * m * n;
      T* const y = ctx.out(0).as<T>() + b * m * n;
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t k = i * n; k < (i + 1) * n; ++k) {
          T sum = middle[i] * x[k];
          if (i + 1 < m) sum += above[i] * x[k + n];
          if (i > 0) sum += below[i] * x[k - n];
          y[k] = sum;
        }
      }
    }
  });
}

FLOE_REGISTER_KERNELS(TridiagonalMatMul, kCpu, MakeFunction<Product<T>>,
                      TypeList<float, double, std::complex<float>, std::complex<double>>);

}  // namespace
}  // namespace floe::kernels
