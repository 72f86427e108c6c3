// Qr, Svd, SelfAdjointEigV2 and Eig.
#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <Eigen/SVD>
#include <complex>
#include <limits>

#include "kernels/cpu/linalg/matrices.h"

namespace floe::kernels {
namespace {

// What one output has of columns says whether full matrices are wanted.
absl::Status Qr(MatrixCall& call) {
  Matrix &a = call.in[0], &q = call.out[0], &r = call.out[1];
  q.setIdentity();
  if (a.size() == 0) return absl::OkStatus();
  const Eigen::HouseholderQR<Matrix> qr(a);
  q.applyOnTheLeft(qr.householderQ());
  r = qr.matrixQR().topRows(q.cols()).triangularView<Eigen::Upper>();
  return absl::OkStatus();
}
const bool kQr = RegisterMatrices("Qr", Qr);

// A matrix with NaN or infinity has NaN for all of its results, as in TensorFlow; one without
// singular vectors of its own the identity.
absl::Status Svd(MatrixCall& call) {
  const Matrix& a = call.in[0];
  const bool vectors = call.attrs.Bool("compute_uv", true), full = call.attrs.Bool("full_matrices");
  if (a.size() == 0 || !a.allFinite()) {
    const double value = a.size() == 0 ? 0 : std::numeric_limits<double>::quiet_NaN();
    call.out[0].setConstant(value);
    for (int i = 1; vectors && i <= 2; ++i) {
      call.out[i].setIdentity();
      call.out[i].array() += value;
    }
    return absl::OkStatus();
  }
  const unsigned u =
      full ? Eigen::ComputeFullU | Eigen::ComputeFullV : Eigen::ComputeThinU | Eigen::ComputeThinV;
  const Eigen::BDCSVD<Matrix> svd(a, vectors ? u : 0);
  call.out[0] = svd.singularValues();
  if (!vectors) return absl::OkStatus();
  call.out[1] = svd.matrixU();
  call.out[2] = svd.matrixV();
  return absl::OkStatus();
}
const bool kSvd = RegisterMatrices("Svd", Svd, {.dims = 1, .copies = 6});

// The lower triangle alone is read.
absl::Status SelfAdjointEigen(MatrixCall& call) {
  const bool vectors = call.attrs.Bool("compute_v", true);
  const Eigen::SelfAdjointEigenSolver<Matrix> eigen(
      call.in[0], vectors ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly);
  if (eigen.info() != Eigen::Success || eigen.eigenvalues().hasNaN()) {
    return absl::InvalidArgumentError(
        "Self-adjoint eigen decomposition was not successful. The input might not be valid.");
  }
  call.out[0] = eigen.eigenvalues();
  if (vectors) call.out[1] = eigen.eigenvectors();
  return absl::OkStatus();
}
const bool kSelfAdjointEigen = RegisterMatrices("SelfAdjointEigV2", SelfAdjointEigen, {.dims = 1});

using Complex = std::complex<double>;
using ComplexMatrix = Eigen::MatrixXcd;

// Real and imaginary parts side by side.
void SetParts(const ComplexMatrix& from, Matrix* to) {
  for (int64_t c = 0; c < from.cols(); ++c) {
    to->col(2 * c) = from.col(c).real();
    to->col(2 * c + 1) = from.col(c).imag();
  }
}

// Eigenvectors of the triangle `t` by substitution, then of the matrix u t u*; each of length 1.
ComplexMatrix VectorsOf(const ComplexMatrix& t, const ComplexMatrix& u) {
  const int64_t n = t.rows();
  const double least = std::numeric_limits<double>::epsilon() * t.norm();
  ComplexMatrix x = ComplexMatrix::Zero(n, n);
  for (int64_t k = 0; k < n; ++k) {
    x(k, k) = 1;
    for (int64_t i = k - 1; i >= 0; --i) {
      Complex apart = t(i, i) - t(k, k);
      if (apart == 0.0) apart = least;  // a multiple value
      const Complex sum = (t.row(i).segment(i + 1, k - i) * x.col(k).segment(i + 1, k - i))(0, 0);
      x(i, k) = sum == 0.0 ? sum : -sum / apart;
    }
  }
  x = u * x;
  x.colwise().normalize();
  return x;
}

// Of any square matrix, by its Schur form; values and vectors are complex, in the order of the
// form.
absl::Status GeneralEigen(MatrixCall& call) {
  const bool vectors = call.attrs.Bool("compute_v", true);
  const Matrix& a = call.in[0];
  if (!a.allFinite())
    return absl::InvalidArgumentError("the input matrix has infinite elements or NaN");
  const Eigen::ComplexSchur<ComplexMatrix> schur(a.cast<Complex>(), vectors);
  if (schur.info() != Eigen::Success)
    return absl::InvalidArgumentError(
        "Eigen decomposition was not successful. The input might not be valid.");
  SetParts(schur.matrixT().diagonal(), &call.out[0]);
  if (vectors) SetParts(VectorsOf(schur.matrixT(), schur.matrixU()), &call.out[1]);
  return absl::OkStatus();
}
const bool kGeneralEigen = RegisterMatrices(
    "Eig", GeneralEigen, {.dims = 1, .copies = 14, .dtypes = {DType::kFloat32, DType::kFloat64}});

}  // namespace
}  // namespace floe::kernels
