// Svd.
#include <Eigen/SVD>
#include <algorithm>
#include <limits>

#include "kernels/cpu/linalg/matrices.h"

namespace floe::kernels {
namespace {

// A matrix with NaN or infinity has NaN for all of its results, as in TensorFlow.
class SvdOp {
 public:
  explicit SvdOp(const Attrs& attrs)
      : vectors_(attrs.Bool("compute_uv", true)), full_(attrs.Bool("full_matrices")) {}

  absl::Status Run(const KernelContext& ctx) const {
    if (ctx.out(0).elements() == 0 && ctx.out(1).elements() == 0 && ctx.out(2).elements() == 0)
      return absl::OkStatus();
    const Matrices m = MatricesOf(ctx.in(0).shape);
    const int64_t most = std::max(m.rows, m.cols), least = std::min(m.rows, m.cols);
    const int64_t wide = full_ && vectors_ ? most : least;
    FLOE_ASSIGN_OR_RETURN(const MemoryShare share, TakeMatrices(6 * most * (wide + least)));
    unsigned options = 0;
    if (vectors_ && full_) options = Eigen::ComputeFullU | Eigen::ComputeFullV;
    if (vectors_ && !full_) options = Eigen::ComputeThinU | Eigen::ComputeThinV;
    Matrix a(m.rows, m.cols);
    return ForEachMatrix(m.count, [&](int64_t k) {
      Load(ctx.in(0), k, &a);
      if (!a.allFinite()) {
        const double nan = std::numeric_limits<double>::quiet_NaN();
        Fill(nan, Matrix::Constant(least, 1, nan), k, ctx);
      } else if (a.size() == 0) {
        Fill(0, Matrix(least, 1), k, ctx);
      } else {
        const Eigen::BDCSVD<Matrix> svd(a, options);
        Store(svd.singularValues(), k, ctx.out(0));
        if (!vectors_) return absl::OkStatus();
        Store(svd.matrixU(), k, ctx.out(1));
        Store(svd.matrixV(), k, ctx.out(2));
      }
      return absl::OkStatus();
    });
  }

 private:
  // Without singular vectors of its own a matrix has the identity plus `value`.
  void Fill(double value, const Matrix& s, int64_t k, const KernelContext& ctx) const {
    Store(s, k, ctx.out(0));
    for (int i = 1; vectors_ && i <= 2; ++i) {
      const Matrices size = MatricesOf(ctx.out(i).shape);
      Matrix v = Matrix::Identity(size.rows, size.cols);
      v.array() += value;
      Store(v, k, ctx.out(i));
    }
  }

  bool vectors_, full_;
};

const bool kSvdRegistered = RegisterMatrices<SvdOp>("Svd");

}  // namespace
}  // namespace floe::kernels
