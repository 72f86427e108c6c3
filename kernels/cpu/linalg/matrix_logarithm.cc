// MatrixLogarithm.
#include <Eigen/Eigenvalues>
#include <unsupported/Eigen/MatrixFunctions>

#include "kernels/cpu/linalg/matrix_function.h"

namespace floe::kernels {
namespace {

// Eigen takes square roots until a matrix is near the identity, which that of a singular matrix, or
// one with NaN, never is. Here the roots are counted, and Eigen gets what is near already.
struct Logarithm {
  template <class W>
  static bool Apply(const Matrix<W>& a, Matrix<W>* y) {
    if (a.rows() <= 2) {  // these have a formula
      *y = a.log();
      return true;
    }
    constexpr int kMostRoots = 100;
    constexpr double kNear = 0.25;
    Eigen::ComplexSchur<Matrix<W>> schur(a);
    if (schur.info() != Eigen::Success) return false;
    Matrix<W> t = schur.matrixT().template triangularView<Eigen::Upper>(), root(a.rows(), a.cols());
    const Matrix<W> one = Matrix<W>::Identity(a.rows(), a.cols());
    int roots = 0;
    for (double distance; !((distance = (t - one).cwiseAbs().colwise().sum().maxCoeff()) < kNear);
         ++roots) {
      if (!std::isfinite(distance) || roots == kMostRoots) return false;
      root.setZero();
      Eigen::matrix_sqrt_triangular(t, root);
      t = root.template triangularView<Eigen::Upper>();
    }
    if (!t.allFinite()) return false;
    const Matrix<W> log = t.log();
    *y = schur.matrixU() * log * schur.matrixU().adjoint() * std::ldexp(1.0, roots);
    return true;
  }
};

const bool kMatrixLogarithmRegistered =
    RegisterComplexMatrices<MatrixFunctionOp<Logarithm>>("MatrixLogarithm");

}  // namespace
}  // namespace floe::kernels
