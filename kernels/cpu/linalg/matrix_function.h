// The kernel of an op that is a function of square matrices.
#pragma once

#include <limits>

#include "kernels/cpu/linalg/matrices.h"

namespace floe::kernels {

// NaN in both parts of a complex number.
template <class W>
W NotANumber() {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  if constexpr (std::is_same_v<W, ComplexDouble>)
    return {kNan, kNan};
  else
    return kNan;
}

// Function::Apply(a, &y) is false where there is no result. That gives NaN, as does a matrix with
// NaN or infinity.
template <class Function>
class MatrixFunctionOp {
 public:
  explicit MatrixFunctionOp(const Attrs&) {}

  template <class W>
  absl::Status Run(const KernelContext& ctx) const {
    if (ctx.out(0).elements() == 0) return absl::OkStatus();
    const Matrices m = MatricesOf(ctx.in(0).shape);
    FLOE_ASSIGN_OR_RETURN(const MemoryShare share, TakeMatrices<W>(10 * m.rows * m.cols));
    Matrix<W> a(m.rows, m.cols), y(m.rows, m.cols);
    return ForEachMatrix(m.count, [&](int64_t k) {
      Load(ctx.in(0), k, &a);
      if (!a.allFinite() || !Function::Apply(a, &y)) y.setConstant(NotANumber<W>());
      Store<W>(y, k, ctx.out(0));
      return absl::OkStatus();
    });
  }
};

}  // namespace floe::kernels
