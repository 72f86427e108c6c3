// Solving, inverses and determinants: Cholesky, MatrixTriangularSolve, BandedTriangularSolve and
// MatrixSolveLs; MatrixInverse, the determinants, Lu and MatrixSolve, by LU decomposition.
#include <Eigen/Cholesky>
#include <Eigen/LU>
#include <Eigen/QR>
#include <limits>
#include <string>

#include "base/status.h"
#include "kernels/cpu/linalg/matrices.h"

namespace floe::kernels {
namespace {

constexpr DType kF32 = DType::kFloat32, kF64 = DType::kFloat64, kF16 = DType::kFloat16,
                kBF16 = DType::kBFloat16;

// The lower triangle alone is read. A matrix without a decomposition gives NaN, as in TensorFlow.
absl::Status Cholesky(MatrixCall& call) {
  Matrix& lower = call.out[0];
  const Eigen::LLT<Matrix> llt(call.in[0]);
  lower = llt.matrixL();
  if (llt.info() != Eigen::Success || lower.hasNaN()) {
    lower.setZero();
    lower.triangularView<Eigen::Lower>().setConstant(std::numeric_limits<double>::quiet_NaN());
  }
  return absl::OkStatus();
}
const bool kCholesky = RegisterMatrices("Cholesky", Cholesky);

// A zero on the diagonal gives infinity and NaN, as in TensorFlow.
absl::Status TriangularSolve(MatrixCall& call) {
  const bool lower = call.attrs.Bool("lower", true), adjoint = call.attrs.Bool("adjoint");
  Matrix &a = call.in[0], &x = call.out[0];
  x = call.in[1];
  if (adjoint) a.transposeInPlace();
  if (lower != adjoint)
    a.triangularView<Eigen::Lower>().solveInPlace(x);
  else
    a.triangularView<Eigen::Upper>().solveInPlace(x);
  return absl::OkStatus();
}
const bool kTriangularSolve = RegisterMatrices("MatrixTriangularSolve", TriangularSolve,
                                               {.dtypes = {kF32, kF64, kF16, kBF16}});

// Of a lower matrix row d of the bands has the elements d below the diagonal, each in its row's
// column; of an upper one the diagonal is the last row of the bands.
absl::Status BandedSolve(MatrixCall& call) {
  const bool lower = call.attrs.Bool("lower", true), adjoint = call.attrs.Bool("adjoint");
  const Matrix& bands = call.in[0];
  Matrix& x = call.out[0];
  const int64_t width = bands.rows();
  if (width == 0) return absl::InvalidArgumentError("the matrix has no bands");
  if ((bands.row(lower ? 0 : width - 1).array() == 0).any())
    return absl::InvalidArgumentError("Input matrix is not invertible.");
  // Element (i, j) of what is solved, within the bands.
  const auto at = [&](int64_t i, int64_t j) {
    const int64_t row = adjoint ? j : i, col = adjoint ? i : j;
    return lower ? bands(row - col, row) : bands(width - 1 - (col - row), row);
  };
  const bool forward = lower != adjoint;
  x = call.in[1];
  for (int64_t step = 0; step < x.rows(); ++step) {
    const int64_t i = forward ? step : x.rows() - 1 - step;
    for (int64_t d = 1; d < std::min(width, step + 1); ++d) {
      const int64_t j = forward ? i - d : i + d;
      x.row(i) -= at(i, j) * x.row(j);
    }
    x.row(i) /= at(i, i);
  }
  return absl::OkStatus();
}
const bool kBandedSolve =
    RegisterMatrices("BandedTriangularSolve", BandedSolve, {.dtypes = {kF32, kF64}});

double Epsilon(DType dtype) {
  if (dtype == DType::kFloat64) return std::numeric_limits<double>::epsilon();
  return dtype == DType::kFloat16 ? 1.0 / 1024 : std::numeric_limits<float>::epsilon();
}

absl::Status NormalEquations(const Matrix& a, const Matrix& b, double l2, Matrix* x) {
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

// Least squares: `fast` by the normal equations, else by a decomposition that shows the rank.
absl::Status SolveLs(MatrixCall& call) {
  const double l2 = *call.ctx.in(2).as<double>();
  if (!(l2 >= 0))
    return absl::InvalidArgumentError("l2_regularizer is " + std::to_string(l2) +
                                      ", expected 0 or more");
  const Matrix &a = call.in[0], &b = call.in[1];
  if (a.rows() == 0) {
    call.out[0].setZero();
    return absl::OkStatus();
  }
  if (call.attrs.Bool("fast", true)) return NormalEquations(a, b, l2, &call.out[0]);
  Eigen::CompleteOrthogonalDecomposition<Matrix> qr(a.rows(), a.cols());
  qr.setThreshold(Epsilon(call.ctx.in(0).dtype) *
                  static_cast<double>(std::min(a.rows(), a.cols())));
  call.out[0] = qr.compute(a).solve(b);
  return absl::OkStatus();
}
const bool kSolveLs = RegisterMatrices("MatrixSolveLs", SolveLs, {.copies = 6});

using Pivoted = Eigen::PartialPivLU<Matrix>;

// False also where a pivot is NaN.
bool Invertible(const Pivoted& lu) {
  return lu.matrixLU().diagonal().cwiseAbs().minCoeff() > 0 && !lu.matrixLU().diagonal().hasNaN();
}

absl::Status Inverse(MatrixCall& call) {
  if (call.attrs.Bool("adjoint")) call.in[0].transposeInPlace();
  const Pivoted lu(call.in[0]);
  if (!Invertible(lu)) return absl::InvalidArgumentError("Input is not invertible.");
  call.out[0] = lu.inverse();
  return absl::OkStatus();
}
const bool kInverse =
    RegisterMatrices("MatrixInverse", Inverse, {.dtypes = {kF32, kF64, kF16, kBF16}});

// Without elements it is 1.
absl::Status Determinant(MatrixCall& call) {
  call.out[0](0, 0) = call.in[0].size() > 0 ? Pivoted(call.in[0]).determinant() : 1;
  return absl::OkStatus();
}
const bool kDeterminant = RegisterMatrices("MatrixDeterminant", Determinant,
                                           {.dims = 0, .dtypes = {kF32, kF64, kF16, kBF16}});

// Its sign, and the logarithm of its size.
absl::Status LogDeterminant(MatrixCall& call) {
  double &sign = call.out[0](0, 0), &log = call.out[1](0, 0);
  sign = 1;
  log = 0;
  if (call.in[0].size() == 0) return absl::OkStatus();
  const Pivoted lu(call.in[0]);
  sign = static_cast<double>(lu.permutationP().determinant());
  for (const double pivot : lu.matrixLU().diagonal()) {
    if (pivot == 0) {
      sign = 0;
      log = -std::numeric_limits<double>::infinity();
      break;
    }
    sign *= std::isnan(pivot) ? pivot : std::copysign(1.0, pivot);
    log += std::log(std::abs(pivot));
  }
  return absl::OkStatus();
}
const bool kLogDeterminant = RegisterMatrices("LogMatrixDeterminant", LogDeterminant, {.dims = 0});

absl::Status Lu(MatrixCall& call) {
  const Pivoted lu(call.in[0]);
  if (!Invertible(lu)) return absl::InvalidArgumentError("Input is not invertible.");
  call.out[0] = lu.matrixLU();
  const Eigen::PermutationMatrix<Eigen::Dynamic> rows = lu.permutationP().transpose();
  call.out[1] = rows.indices().cast<double>();
  return absl::OkStatus();
}
const bool kLu = RegisterMatrices("Lu", Lu);

absl::Status Solve(MatrixCall& call) {
  if (call.attrs.Bool("adjoint")) call.in[0].transposeInPlace();
  const Pivoted lu(call.in[0]);
  if (!Invertible(lu)) return absl::InvalidArgumentError("Input matrix is not invertible.");
  call.out[0].noalias() = lu.solve(call.in[1]);
  return absl::OkStatus();
}
const bool kSolve = RegisterMatrices("MatrixSolve", Solve);

}  // namespace
}  // namespace floe::kernels
