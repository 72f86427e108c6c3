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

  template <class W>
  absl::Status Run(const KernelContext& ctx) const {
    if (ctx.out(0).elements() == 0 && ctx.out(1).elements() == 0 && ctx.out(2).elements() == 0)
      return absl::OkStatus();
    const Matrices m = MatricesOf(ctx.in(0).shape);
    const int64_t most = std::max(m.rows, m.cols), least = std::min(m.rows, m.cols);
    const int64_t wide = full_ && vectors_ ? most : least;
    FLOE_ASSIGN_OR_RETURN(const MemoryShare share, TakeMatrices<W>(6 * most * (wide + least)));
    unsigned options = 0;
    if (vectors_ && full_) options = Eigen::ComputeFullU | Eigen::ComputeFullV;
    if (vectors_ && !full_) options = Eigen::ComputeThinU | Eigen::ComputeThinV;
    Matrix<W> a(m.rows, m.cols);
    return ForEachMatrix(m.count, [&](int64_t k) {
      Load(ctx.in(0), k, &a);
      if (!a.allFinite()) {
        const W nan = std::numeric_limits<double>::quiet_NaN();
        Fill<W>(nan, Matrix<W>::Constant(least, 1, nan), k, ctx);
      } else if (a.size() == 0) {
        Fill<W>(W(0), Matrix<W>(least, 1), k, ctx);
      } else {
        const Eigen::BDCSVD<Matrix<W>> svd(a, options);
        Store<W>(svd.singularValues(), k, ctx.out(0));
        if (!vectors_) return absl::OkStatus();
        Store<W>(svd.matrixU(), k, ctx.out(1));
        Store<W>(svd.matrixV(), k, ctx.out(2));
      }
      return absl::OkStatus();
    });
  }

 private:
  // Without singular vectors of its own a matrix has the identity plus `value`.
  template <class W>
  void Fill(W value, const Matrix<W>& s, int64_t k, const KernelContext& ctx) const {
    Store<W>(s, k, ctx.out(0));
    for (int i = 1; vectors_ && i <= 2; ++i) {
      const Matrices size = MatricesOf(ctx.out(i).shape);
      Matrix<W> v = Matrix<W>::Identity(size.rows, size.cols);
      v.array() += value;
      Store<W>(v, k, ctx.out(i));
    }
  }

  bool vectors_, full_;
};

const bool kSvdRegistered = RegisterMatrices<SvdOp>("Svd");

}  // namespace
}  // namespace floe::kernels
