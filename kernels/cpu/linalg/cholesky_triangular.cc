// Cholesky, MatrixTriangularSolve, BandedTriangularSolve and MatrixSolveLs.
#include <Eigen/Cholesky>
#include <Eigen/QR>
#include <limits>

#include "kernels/cpu/linalg/matrices.h"

namespace floe::kernels {
namespace {

// The lower triangle alone is read. A matrix without a decomposition gives NaN, as in TensorFlow.
class CholeskyOp {
 public:
  explicit CholeskyOp(const Attrs&) {}

  absl::Status Run(const KernelContext& ctx) const {
    if (ctx.out(0).elements() == 0) return absl::OkStatus();
    const Matrices m = MatricesOf(ctx.in(0).shape);
    FLOE_ASSIGN_OR_RETURN(const MemoryShare share, TakeMatrices(3 * m.rows * m.cols));
    Matrix a(m.rows, m.cols);
    Eigen::LLT<Matrix> llt(m.rows);
    return ForEachMatrix(m.count, [&](int64_t k) {
      Load(ctx.in(0), k, &a);
      llt.compute(a);
      a = llt.matrixL();
      if (llt.info() != Eigen::Success || a.hasNaN()) {
        a.setZero();
        a.triangularView<Eigen::Lower>().setConstant(std::numeric_limits<double>::quiet_NaN());
      }
      Store(a, k, ctx.out(0));
      return absl::OkStatus();
    });
  }
};

// Index of a broadcast input's matrix for matrix k of the output.
int64_t BroadcastMatrix(const Shape& in, const Shape& out, int64_t k) {
  int64_t index = 0, step = 1;
  for (int i = 3; i <= out.rank(); ++i) {
    const int64_t place = k % out.dim(out.rank() - i);
    k /= out.dim(out.rank() - i);
    if (i > in.rank()) continue;
    const int64_t size = in.dim(in.rank() - i);
    if (size != 1) index += place * step;
    step *= size;
  }
  return index;
}

// A zero on the diagonal gives infinity and NaN, as in TensorFlow.
class TriangularSolveOp {
 public:
  explicit TriangularSolveOp(const Attrs& attrs)
      : lower_(attrs.Bool("lower", true)), adjoint_(attrs.Bool("adjoint")) {}

  absl::Status Run(const KernelContext& ctx) const {
    if (ctx.out(0).elements() == 0) return absl::OkStatus();
    const Matrices m = MatricesOf(ctx.in(0).shape), s = MatricesOf(ctx.out(0).shape);
    FLOE_ASSIGN_OR_RETURN(const MemoryShare share,
                          TakeMatrices(2 * m.rows * m.cols + s.rows * s.cols));
    Matrix a(m.rows, m.cols), x(s.rows, s.cols);
    return ForEachMatrix(s.count, [&](int64_t k) {
      Load(ctx.in(0), BroadcastMatrix(ctx.in(0).shape, ctx.out(0).shape, k), &a);
      Load(ctx.in(1), BroadcastMatrix(ctx.in(1).shape, ctx.out(0).shape, k), &x);
      if (adjoint_) a.transposeInPlace();
      if (lower_ != adjoint_)
        a.triangularView<Eigen::Lower>().solveInPlace(x);
      else
        a.triangularView<Eigen::Upper>().solveInPlace(x);
      Store(x, k, ctx.out(0));
      return absl::OkStatus();
    });
  }

 private:
  bool lower_, adjoint_;
};

// Of a lower matrix row d of the bands has the elements d below the diagonal, each in its row's
// column; of an upper one the diagonal is the last row of the bands.
class BandedSolveOp {
 public:
  explicit BandedSolveOp(const Attrs& attrs)
      : lower_(attrs.Bool("lower", true)), adjoint_(attrs.Bool("adjoint")) {}

  absl::Status Run(const KernelContext& ctx) const {
    if (ctx.out(0).elements() == 0) return absl::OkStatus();
    const Matrices m = MatricesOf(ctx.in(0).shape), s = MatricesOf(ctx.out(0).shape);
    if (m.rows == 0) return absl::InvalidArgumentError("the matrix has no bands");
    FLOE_ASSIGN_OR_RETURN(const MemoryShare share, TakeMatrices(m.rows * m.cols + s.rows * s.cols));
    Matrix bands(m.rows, m.cols), x(s.rows, s.cols);
    return ForEachMatrix(s.count, [&](int64_t k) -> absl::Status {
      Load(ctx.in(0), BroadcastMatrix(ctx.in(0).shape, ctx.out(0).shape, k), &bands);
      Load(ctx.in(1), BroadcastMatrix(ctx.in(1).shape, ctx.out(0).shape, k), &x);
      if ((bands.row(lower_ ? 0 : m.rows - 1).array() == 0).any())
        return absl::InvalidArgumentError("Input matrix is not invertible.");
      const bool forward = lower_ != adjoint_;
      for (int64_t step = 0; step < s.rows; ++step) {
        const int64_t i = forward ? step : s.rows - 1 - step;
        for (int64_t d = 1; d < std::min(m.rows, step + 1); ++d) {
          const int64_t j = forward ? i - d : i + d;
          x.row(i) -= At(bands, i, j) * x.row(j);
        }
        x.row(i) /= At(bands, i, i);
      }
      Store(x, k, ctx.out(0));
      return absl::OkStatus();
    });
  }

 private:
  // Element (i, j) of what is solved, within the bands.
  double At(const Matrix& bands, int64_t i, int64_t j) const {
    const int64_t row = adjoint_ ? j : i, col = adjoint_ ? i : j;
    return lower_ ? bands(row - col, row) : bands(bands.rows() - 1 - (col - row), row);
  }

  bool lower_, adjoint_;
};

double Epsilon(DType dtype) {
  if (dtype == DType::kFloat64) return std::numeric_limits<double>::epsilon();
  return dtype == DType::kFloat16 ? 1.0 / 1024 : std::numeric_limits<float>::epsilon();
}

// Least squares: `fast` by the normal equations, else by a decomposition that shows the rank.
class SolveLsOp {
 public:
  explicit SolveLsOp(const Attrs& attrs) : fast_(attrs.Bool("fast", true)) {}

  absl::Status Run(const KernelContext& ctx) const {
    const double l2 = *ctx.in(2).as<double>();
    if (!(l2 >= 0))
      return absl::InvalidArgumentError("l2_regularizer is " + std::to_string(l2) +
                                        ", expected 0 or more");
    if (ctx.out(0).elements() == 0) return absl::OkStatus();
    const Matrices m = MatricesOf(ctx.in(0).shape), s = MatricesOf(ctx.in(1).shape);
    const int64_t most = std::max({m.rows, m.cols, s.cols});
    FLOE_ASSIGN_OR_RETURN(const MemoryShare share, TakeMatrices(6 * most * most));
    Matrix a(m.rows, m.cols), b(s.rows, s.cols), x(m.cols, s.cols);
    return ForEachMatrix(m.count, [&](int64_t k) -> absl::Status {
      Load(ctx.in(0), k, &a);
      Load(ctx.in(1), k, &b);
      if (m.rows == 0) {
        x.setZero();
      } else if (!fast_) {
        Eigen::CompleteOrthogonalDecomposition<Matrix> qr(m.rows, m.cols);
        qr.setThreshold(Epsilon(ctx.in(0).dtype) * static_cast<double>(std::min(m.rows, m.cols)));
        x = qr.compute(a).solve(b);
      } else {
        FLOE_RETURN_IF_ERROR(Normal(a, b, l2, &x));
      }
      Store(x, k, ctx.out(0));
      return absl::OkStatus();
    });
  }

 private:
  static absl::Status Normal(const Matrix& a, const Matrix& b, double l2, Matrix* x) {
    const bool tall = a.rows() >= a.cols();
    Matrix gram = tall ? Matrix(a.transpose() * a) : Matrix(a * a.transpose());
    gram.diagonal().array() += l2;
    const Eigen::LLT<Matrix> llt(gram);
    if (llt.info() != Eigen::Success || llt.matrixLLT().diagonal().hasNaN()) {
      return absl::InvalidArgumentError(
          "Input matrix was rank deficient or ill-conditioned. Try setting fast=False or provide a "
          "larger l2_regularizer > 0.");
    }
    if (tall)
      *x = llt.solve(a.transpose() * b);
    else
      *x = a.transpose() * llt.solve(b);
    return absl::OkStatus();
  }

  bool fast_;
};

const bool kMatrixSolveRegistered[] = {
    RegisterMatrices<CholeskyOp>("Cholesky"),
    RegisterMatrices<TriangularSolveOp>(
        "MatrixTriangularSolve",
        {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}),
    RegisterMatrices<BandedSolveOp>("BandedTriangularSolve", {DType::kFloat32, DType::kFloat64}),
    RegisterMatrices<SolveLsOp>("MatrixSolveLs"),
};

}  // namespace
}  // namespace floe::kernels
