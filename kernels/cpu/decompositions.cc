// Qr and SelfAdjointEigV2.
#include <Eigen/Eigenvalues>
#include <Eigen/QR>

#include "kernels/cpu/matrices.h"

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

const bool kRegistered[] = {
    RegisterMatrices<QrOp>("Qr"),
    RegisterMatrices<SelfAdjointEigenOp>("SelfAdjointEigV2"),
};

}  // namespace
}  // namespace floe::kernels
