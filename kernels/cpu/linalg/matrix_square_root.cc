// MatrixSquareRoot.
#include <unsupported/Eigen/MatrixFunctions>

#include "kernels/cpu/linalg/matrix_function.h"

namespace floe::kernels {
namespace {

struct SquareRoot {
  template <class W>
  static bool Apply(const Matrix<W>& a, Matrix<W>* y) {
    *y = a.sqrt();
    return true;
  }
};

const bool kMatrixSquareRootRegistered =
    RegisterMatrices<MatrixFunctionOp<SquareRoot>>("MatrixSquareRoot");

}  // namespace
}  // namespace floe::kernels
