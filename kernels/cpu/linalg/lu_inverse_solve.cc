// MatrixInverse, the determinants, Lu and MatrixSolve, by LU decomposition.
#include <Eigen/LU>
#include <limits>

#include "kernels/cpu/linalg/matrices.h"

namespace floe::kernels {
namespace {

absl::Status NotInvertible() { return absl::InvalidArgumentError("Input is not invertible."); }

// False also where a pivot is NaN.
bool Invertible(const Eigen::PartialPivLU<Matrix>& lu) {
  return lu.matrixLU().diagonal().cwiseAbs().minCoeff() > 0 && !lu.matrixLU().diagonal().hasNaN();
}

class InverseOp {
 public:
  explicit InverseOp(const Attrs& attrs) : adjoint_(attrs.Bool("adjoint")) {}

  absl::Status Run(const KernelContext& ctx) const {
    if (ctx.out(0).elements() == 0) return absl::OkStatus();
    const Matrices m = MatricesOf(ctx.in(0).shape);
    FLOE_ASSIGN_OR_RETURN(const MemoryShare share, TakeMatrices(3 * m.rows * m.cols));
    Matrix a(m.rows, m.cols);
    Eigen::PartialPivLU<Matrix> lu(m.rows);
    return ForEachMatrix(m.count, [&](int64_t k) {
      Load(ctx.in(0), k, &a);
      if (adjoint_) a.transposeInPlace();
      lu.compute(a);
      if (!Invertible(lu)) return NotInvertible();
      a = lu.inverse();
      Store(a, k, ctx.out(0));
      return absl::OkStatus();
    });
  }

 private:
  bool adjoint_;
};

struct LogDeterminant {
  double sign = 1;
  double log = 0;
};
LogDeterminant LogDeterminantOf(const Eigen::PartialPivLU<Matrix>& lu) {
  LogDeterminant d;
  d.sign = static_cast<double>(lu.permutationP().determinant());
  for (int64_t i = 0; i < lu.matrixLU().rows(); ++i) {
    const double pivot = lu.matrixLU()(i, i);
    const double size = std::abs(pivot);
    if (size == 0) return {0, -std::numeric_limits<double>::infinity()};
    d.sign *= std::isnan(pivot) ? pivot : std::copysign(1.0, pivot);
    d.log += std::log(size);
  }
  return d;
}

template <bool kLog>
class DeterminantOp {
 public:
  explicit DeterminantOp(const Attrs&) {}

  absl::Status Run(const KernelContext& ctx) const {
    if (ctx.out(0).elements() == 0) return absl::OkStatus();
    const Matrices m = MatricesOf(ctx.in(0).shape);
    FLOE_ASSIGN_OR_RETURN(const MemoryShare share, TakeMatrices(2 * m.rows * m.cols));
    Matrix a(m.rows, m.cols), one(1, 1);
    Eigen::PartialPivLU<Matrix> lu(m.rows);
    return ForEachMatrix(m.count, [&](int64_t k) {
      Load(ctx.in(0), k, &a);
      if (m.rows > 0) lu.compute(a);  // without elements the determinant is 1
      if constexpr (kLog) {
        const LogDeterminant d = m.rows > 0 ? LogDeterminantOf(lu) : LogDeterminant();
        one(0, 0) = d.sign;
        Store(one, k, ctx.out(0));
        one(0, 0) = d.log;
        Store(one, k, ctx.out(1));
      } else {
        one(0, 0) = m.rows > 0 ? lu.determinant() : 1;
        Store(one, k, ctx.out(0));
      }
      return absl::OkStatus();
    });
  }
};

class LuOp {
 public:
  explicit LuOp(const Attrs&) {}

  absl::Status Run(const KernelContext& ctx) const {
    if (ctx.out(0).elements() == 0) return absl::OkStatus();
    const Matrices m = MatricesOf(ctx.in(0).shape);
    FLOE_ASSIGN_OR_RETURN(const MemoryShare share, TakeMatrices(2 * m.rows * m.cols));
    Matrix a(m.rows, m.cols);
    Eigen::PartialPivLU<Matrix> lu(m.rows);
    return ForEachMatrix(m.count, [&](int64_t k) {
      Load(ctx.in(0), k, &a);
      lu.compute(a);
      if (!Invertible(lu)) return NotInvertible();
      Store(lu.matrixLU(), k, ctx.out(0));
      const Eigen::PermutationMatrix<Eigen::Dynamic> rows = lu.permutationP().transpose();
      for (int64_t i = 0; i < m.rows; ++i) {
        if (ctx.out(1).dtype == DType::kInt32)
          ctx.out(1).as<int32_t>()[k * m.rows + i] = rows.indices()(i);
        else
          ctx.out(1).as<int64_t>()[k * m.rows + i] = rows.indices()(i);
      }
      return absl::OkStatus();
    });
  }
};

class SolveOp {
 public:
  explicit SolveOp(const Attrs& attrs) : adjoint_(attrs.Bool("adjoint")) {}

  absl::Status Run(const KernelContext& ctx) const {
    if (ctx.out(0).elements() == 0) return absl::OkStatus();
    const Matrices m = MatricesOf(ctx.in(0).shape), s = MatricesOf(ctx.in(1).shape);
    FLOE_ASSIGN_OR_RETURN(const MemoryShare share,
                          TakeMatrices(2 * m.rows * m.cols + 2 * s.rows * s.cols));
    Matrix a(m.rows, m.cols), b(s.rows, s.cols), x(s.rows, s.cols);
    Eigen::PartialPivLU<Matrix> lu(m.rows);
    return ForEachMatrix(m.count, [&](int64_t k) {
      Load(ctx.in(0), k, &a);
      Load(ctx.in(1), k, &b);
      if (adjoint_) a.transposeInPlace();
      lu.compute(a);
      if (!Invertible(lu)) return absl::InvalidArgumentError("Input matrix is not invertible.");
      x.noalias() = lu.solve(b);
      Store(x, k, ctx.out(0));
      return absl::OkStatus();
    });
  }

 private:
  bool adjoint_;
};

constexpr DType kF32 = DType::kFloat32, kF64 = DType::kFloat64, kF16 = DType::kFloat16,
                kBF16 = DType::kBFloat16;
const bool kLinearAlgebraRegistered[] = {
    RegisterMatrices<InverseOp>("MatrixInverse", {kF32, kF64, kF16, kBF16}),
    RegisterMatrices<DeterminantOp<false>>("MatrixDeterminant", {kF32, kF64, kF16, kBF16}),
    RegisterMatrices<DeterminantOp<true>>("LogMatrixDeterminant"),
    RegisterMatrices<LuOp>("Lu"),
    RegisterMatrices<SolveOp>("MatrixSolve"),
};

}  // namespace
}  // namespace floe::kernels
