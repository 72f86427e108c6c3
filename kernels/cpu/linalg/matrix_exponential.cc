// MatrixExponential.
#include <unsupported/Eigen/MatrixFunctions>

#include "kernels/cpu/linalg/matrix_function.h"

namespace floe::kernels {
namespace {

struct Exponential {
  template <class W>
  static bool Apply(const Matrix<W>& a, Matrix<W>* y) {
    *y = a.exp();
    return true;
  }
};

const bool kMatrixExponentialRegistered =
    RegisterMatrices<MatrixFunctionOp<Exponential>>("MatrixExponential");

}  // namespace
}  // namespace floe::kernels
