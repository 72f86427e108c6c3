// Qr, SelfAdjointEigV2 and Eig.
#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <limits>

#include "kernels/cpu/linalg/matrices.h"

namespace floe::kernels {
namespace {

class QrOp {
 public:
  explicit QrOp(const Attrs&) {}

  // What one output has of columns says whether full matrices are wanted.
  template <class W>
  absl::Status Run(const KernelContext& ctx) const {
    const Matrices m = MatricesOf(ctx.in(0).shape), q_size = MatricesOf(ctx.out(0).shape);
    if (ctx.out(0).elements() == 0 && ctx.out(1).elements() == 0) return absl::OkStatus();
    const int64_t inner = q_size.cols;
    FLOE_ASSIGN_OR_RETURN(const MemoryShare share,
                          TakeMatrices<W>(3 * m.rows * (m.cols + inner) + inner * m.cols));
    Matrix<W> a(m.rows, m.cols), q(m.rows, inner), r(inner, m.cols);
    Eigen::HouseholderQR<Matrix<W>> qr(m.rows, m.cols);
    return ForEachMatrix(m.count, [&](int64_t k) {
      Load(ctx.in(0), k, &a);
      q.setIdentity();
      if (a.size() > 0) {
        qr.compute(a);
        q.applyOnTheLeft(qr.householderQ());
        r = qr.matrixQR().topRows(inner).template triangularView<Eigen::Upper>();
      }
      Store<W>(q, k, ctx.out(0));
      Store<W>(r, k, ctx.out(1));
      return absl::OkStatus();
    });
  }
};

// The lower triangle alone is read.
class SelfAdjointEigenOp {
 public:
  explicit SelfAdjointEigenOp(const Attrs& attrs) : vectors_(attrs.Bool("compute_v", true)) {}

  template <class W>
  absl::Status Run(const KernelContext& ctx) const {
    if (ctx.out(0).elements() == 0) return absl::OkStatus();
    const Matrices m = MatricesOf(ctx.in(0).shape);
    FLOE_ASSIGN_OR_RETURN(const MemoryShare share, TakeMatrices<W>(4 * m.rows * m.cols));
    Matrix<W> a(m.rows, m.cols);
    Eigen::SelfAdjointEigenSolver<Matrix<W>> eigen(m.rows);
    return ForEachMatrix(m.count, [&](int64_t k) {
      Load(ctx.in(0), k, &a);
      eigen.compute(a, vectors_ ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly);
      if (eigen.info() != Eigen::Success || eigen.eigenvalues().hasNaN()) {
        return absl::InvalidArgumentError(
            "Self-adjoint eigen decomposition was not successful. The input might not be valid.");
      }
      Store<W>(eigen.eigenvalues(), k, ctx.out(0));
      if (vectors_) Store<W>(eigen.eigenvectors(), k, ctx.out(1));
      return absl::OkStatus();
    });
  }

 private:
  bool vectors_;
};

// Of any square matrix, by its Schur form; values and vectors are complex, in the order of the
// form.
class EigenOp {
 public:
  explicit EigenOp(const Attrs& attrs) : vectors_(attrs.Bool("compute_v", true)) {}

  template <class W>
  absl::Status Run(const KernelContext& ctx) const {
    if (ctx.out(0).elements() == 0) return absl::OkStatus();
    const Matrices m = MatricesOf(ctx.in(0).shape);
    FLOE_ASSIGN_OR_RETURN(const MemoryShare share,
                          TakeMatrices<ComplexDouble>(7 * m.rows * m.cols));
    Matrix<W> a(m.rows, m.cols);
    Eigen::ComplexSchur<Matrix<ComplexDouble>> schur(m.rows);
    return ForEachMatrix(m.count, [&](int64_t k) {
      Load(ctx.in(0), k, &a);
      if (!a.allFinite())
        return absl::InvalidArgumentError("the input matrix has infinite elements or NaN");
      schur.compute(a.template cast<ComplexDouble>(), vectors_);
      if (schur.info() != Eigen::Success)
        return absl::InvalidArgumentError(
            "Eigen decomposition was not successful. The input might not be valid.");
      Store<ComplexDouble>(schur.matrixT().diagonal(), k, ctx.out(0));
      if (vectors_)
        Store<ComplexDouble>(VectorsOf(schur.matrixT(), schur.matrixU()), k, ctx.out(1));
      return absl::OkStatus();
    });
  }

 private:
  // Of the triangle `t` by substitution, then of the matrix u t u*; each of length 1.
  static Matrix<ComplexDouble> VectorsOf(const Matrix<ComplexDouble>& t,
                                         const Matrix<ComplexDouble>& u) {
    const int64_t n = t.rows();
    const double least = std::numeric_limits<double>::epsilon() * t.norm();
    Matrix<ComplexDouble> x = Matrix<ComplexDouble>::Zero(n, n);
    for (int64_t k = 0; k < n; ++k) {
      x(k, k) = 1;
      for (int64_t i = k - 1; i >= 0; --i) {
        ComplexDouble apart = t(i, i) - t(k, k);
        if (apart == 0.0) apart = least;  // a multiple value
        const ComplexDouble sum =
            (t.row(i).segment(i + 1, k - i) * x.col(k).segment(i + 1, k - i))(0, 0);
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
