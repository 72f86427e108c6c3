// Kernels on the matrices in the last two dims of tensors, by Eigen in float64.
// One matrix is computed at a time, in memory of Eigen's: how Eigen sums depends on alignment, and
// in a tensor that differs from row to row.
// Complex dtypes have no kernels: Eigen's templates for them took a fifth of a cold build, and no
// model that is served has them. The ops' inference refuses them.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <initializer_list>
#include <memory>

#include "base/memory_budget.h"
#include "base/status.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/run_watch.h"

namespace floe::kernels {

using Matrix = Eigen::MatrixXd;

struct Matrices {
  int64_t count = 1, rows = 0, cols = 0;
};
Matrices MatricesOf(const Shape& shape);

// Matrix k of a tensor of floats whose matrices are of the size of `m`, and back.
void Load(const TensorView& in, int64_t k, Matrix* m);
void Store(const Matrix& m, int64_t k, const TensorView& out);

// Before Eigen allocates matrices of so many elements together; the share is theirs while they
// live. RESOURCE_EXHAUSTED past the limits.
absl::StatusOr<MemoryShare> TakeMatrices(int64_t elements);

// body(k) for every matrix, until the run should not go on or a body fails.
template <class Body>
absl::Status ForEachMatrix(int64_t count, const Body& body) {
  RunWatch watch;
  for (int64_t k = 0; k < count && !watch.Stopped(); ++k) FLOE_RETURN_IF_ERROR(body(k));
  return watch.status();
}

// Op is made of a node's attributes and has Run(ctx).
template <class Op>
absl::StatusOr<std::unique_ptr<Kernel>> MakeMatrixKernel(const KernelArgs& args) {
  return FromFunction([op = Op(args.node.attrs)](const KernelContext& ctx) { return op.Run(ctx); });
}
template <class Op>
bool RegisterMatrices(const char* name, std::initializer_list<DType> dtypes = {
                                            DType::kFloat32, DType::kFloat64, DType::kFloat16}) {
  KernelRegistrar(name, DeviceKind::kCpu, dtypes, &MakeMatrixKernel<Op>);
  return true;
}

}  // namespace floe::kernels
