// Kernels on the matrices in the last two dims of tensors, by Eigen in float64 or complex128.
// One matrix is computed at a time, in memory of Eigen's: how Eigen sums depends on alignment, and
// in a tensor that differs from row to row.
#pragma once

#include <Eigen/Core>
#include <complex>
#include <cstdint>

#include "base/memory_budget.h"
#include "base/status.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/run_watch.h"

namespace floe::kernels {

using ComplexDouble = std::complex<double>;
template <class W>
using Matrix = Eigen::Matrix<W, Eigen::Dynamic, Eigen::Dynamic>;

struct Matrices {
  int64_t count = 1, rows = 0, cols = 0;
};
inline Matrices MatricesOf(const Shape& shape) {
  Matrices m;
  for (int i = 0; i + 2 < shape.rank(); ++i) m.count *= shape.dim(i);
  m.rows = shape.dim(shape.rank() - 2);
  m.cols = shape.dim(shape.rank() - 1);
  return m;
}

// Both for double and ComplexDouble, which stand for the real and the complex dtypes.
// Matrix k of a tensor whose matrices are of the size of `m`, and back.
template <class W>
void Load(const TensorView& in, int64_t k, Matrix<W>* m);
template <class W>
void Store(const Matrix<W>& m, int64_t k, const TensorView& out);

// Before Eigen allocates matrices of so many elements together; the share is theirs while they
// live. RESOURCE_EXHAUSTED past the limits.
template <class W>
absl::StatusOr<MemoryShare> TakeMatrices(int64_t elements);

// body(k) for every matrix, until the run should not go on or a body fails.
template <class Body>
absl::Status ForEachMatrix(int64_t count, const Body& body) {
  RunWatch watch;
  for (int64_t k = 0; k < count && !watch.Stopped(); ++k) FLOE_RETURN_IF_ERROR(body(k));
  return watch.status();
}

// Op is made of a node's attributes and has Run<W>(ctx).
template <class Op, class W>
absl::StatusOr<std::unique_ptr<Kernel>> MakeMatrixKernel(const KernelArgs& args) {
  return FromFunction(
      [op = Op(args.node.attrs)](const KernelContext& ctx) { return op.template Run<W>(ctx); });
}
template <class Op>
bool RegisterComplexMatrices(const char* name) {
  KernelRegistrar(name, DeviceKind::kCpu, {DType::kComplex64, DType::kComplex128},
                  &MakeMatrixKernel<Op, ComplexDouble>);
  return true;
}
template <class Op>
bool RegisterMatrices(const char* name, std::initializer_list<DType> reals = {
                                            DType::kFloat32, DType::kFloat64, DType::kFloat16}) {
  KernelRegistrar(name, DeviceKind::kCpu, reals, &MakeMatrixKernel<Op, double>);
  return RegisterComplexMatrices<Op>(name);
}

}  // namespace floe::kernels
