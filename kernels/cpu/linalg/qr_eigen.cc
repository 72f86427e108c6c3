// Qr, SelfAdjointEigV2 and Eig.
#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <complex>
#include <limits>

#include "kernels/cpu/linalg/matrices.h"

namespace floe::kernels {
namespace {

class QrOp {
 public:
  explicit QrOp(const Attrs&) {}

  // What one output has of columns says whether full matrices are wanted.
  absl::Status Run(const KernelContext& ctx) const {
    const Matrices m = MatricesOf(ctx.in(0).shape), q_size = MatricesOf(ctx.out(0).shape);
    if (ctx.out(0).elements() == 0 && ctx.out(1).elements() == 0) return absl::OkStatus();
    const int64_t inner = q_size.cols;
    FLOE_ASSIGN_OR_RETURN(const MemoryShare share,
                          TakeMatrices(3 * m.rows * (m.cols + inner) + inner * m.cols));
    Matrix a(m.rows, m.cols), q(m.rows, inner), r(inner, m.cols);
    Eigen::HouseholderQR<Matrix> qr(m.rows, m.cols);
    return ForEachMatrix(m.count, [&](int64_t k) {
      Load(ctx.in(0), k, &a);
      q.setIdentity();
      if (a.size() > 0) {
        qr.compute(a);
        q.applyOnTheLeft(qr.householderQ());
        r = qr.matrixQR().topRows(inner).triangularView<Eigen::Upper>();
      }
      Store(q, k, ctx.out(0));
      Store(r, k, ctx.out(1));
      return absl::OkStatus();
    });
  }
};

// The lower triangle alone is read.
class SelfAdjointEigenOp {
 public:
  explicit SelfAdjointEigenOp(const Attrs& attrs) : vectors_(attrs.Bool("compute_v", true)) {}

  absl::Status Run(const KernelContext& ctx) const {
    if (ctx.out(0).elements() == 0) return absl::OkStatus();
    const Matrices m = MatricesOf(ctx.in(0).shape);
    FLOE_ASSIGN_OR_RETURN(const MemoryShare share, TakeMatrices(4 * m.rows * m.cols));
    Matrix a(m.rows, m.cols);
    Eigen::SelfAdjointEigenSolver<Matrix> eigen(m.rows);
    return ForEachMatrix(m.count, [&](int64_t k) {
      Load(ctx.in(0), k, &a);
      eigen.compute(a, vectors_ ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly);
      if (eigen.info() != Eigen::Success || eigen.eigenvalues().hasNaN()) {
        return absl::InvalidArgumentError(
            "Self-adjoint eigen decomposition was not successful. The input might not be valid.");
      }
      Store(eigen.eigenvalues(), k, ctx.out(0));
      if (vectors_) Store(eigen.eigenvectors(), k, ctx.out(1));
      return absl::OkStatus();
    });
  }

 private:
  bool vectors_;
};

using Complex = std::complex<double>;
using ComplexMatrix = Eigen::MatrixXcd;

void StoreComplex(const ComplexMatrix& m, int64_t k, const TensorView& out) {
  ForDType(out.dtype, Complexes{}, [&](auto type) {
    auto* y = out.as<decltype(type)>() + k * m.size();
    for (int64_t r = 0; r < m.rows(); ++r) {
      for (int64_t c = 0; c < m.cols(); ++c) *y++ = static_cast<decltype(type)>(m(r, c));
    }
  });
}

// Of any square matrix, by its Schur form; values and vectors are complex, in the order of the
// form.
class EigenOp {
 public:
  explicit EigenOp(const Attrs& attrs) : vectors_(attrs.Bool("compute_v", true)) {}

  absl::Status Run(const KernelContext& ctx) const {
    if (ctx.out(0).elements() == 0) return absl::OkStatus();
    const Matrices m = MatricesOf(ctx.in(0).shape);
    FLOE_ASSIGN_OR_RETURN(const MemoryShare share, TakeMatrices(14 * m.rows * m.cols));
    Matrix a(m.rows, m.cols);
    Eigen::ComplexSchur<ComplexMatrix> schur(m.rows);
    return ForEachMatrix(m.count, [&](int64_t k) {
      Load(ctx.in(0), k, &a);
      if (!a.allFinite())
        return absl::InvalidArgumentError("the input matrix has infinite elements or NaN");
      schur.compute(a.cast<Complex>(), vectors_);
      if (schur.info() != Eigen::Success)
        return absl::InvalidArgumentError(
            "Eigen decomposition was not successful. The input might not be valid.");
      StoreComplex(schur.matrixT().diagonal(), k, ctx.out(0));
      if (vectors_) StoreComplex(VectorsOf(schur.matrixT(), schur.matrixU()), k, ctx.out(1));
      return absl::OkStatus();
    });
  }

 private:
  // Of the triangle `t` by substitution, then of the matrix u t u*; each of length 1.
  static ComplexMatrix VectorsOf(const ComplexMatrix& t, const ComplexMatrix& u) {
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

  bool vectors_;
};

const bool kDecompositionsRegistered[] = {
    RegisterMatrices<QrOp>("Qr"),
    RegisterMatrices<SelfAdjointEigenOp>("SelfAdjointEigV2"),
    RegisterMatrices<EigenOp>("Eig", {DType::kFloat32, DType::kFloat64}),
};

}  // namespace
}  // namespace floe::kernels
