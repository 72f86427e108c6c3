// Kernels that are a function of the matrices in the last two dims of tensors, by Eigen in float64.
// One matrix is computed at a time, in memory of Eigen's: how Eigen sums depends on alignment, and
// in a tensor that differs from row to row.
// Complex matrices have no kernels: Eigen's templates for them took a fifth of a cold build, and no
// model that is served has them. The ops' inference refuses them.
#pragma once

#include <Eigen/Core>
#include <vector>

#include "absl/status/status.h"
#include "kernels/kernel.h"

namespace floe::kernels {

using Matrix = Eigen::MatrixXd;

// One matrix of each input, which the function may write over, and of each output, of its size. A
// vector or a number is a matrix of one column, a complex number two elements of a row. Inputs of
// less than two dims are left out; ctx has them.
struct MatrixCall {
  const Attrs& attrs;
  const KernelContext& ctx;
  std::vector<Matrix> in, out;
};
using MatrixFunction = absl::Status (*)(MatrixCall& call);

struct MatrixOptions {
  int dims =
      2;  // of a matrix of output 0; those in front are the batch's, to which inputs broadcast
  int copies = 3;  // what the function takes of memory, in what its inputs and outputs do together
  std::vector<DType> dtypes = {DType::kFloat32, DType::kFloat64, DType::kFloat16};
};
// The function is called for every place of the batch until one fails or the run should not go on,
// and not at all where no output has elements.
bool RegisterMatrices(const char* name, MatrixFunction function, const MatrixOptions& options = {});

}  // namespace floe::kernels
