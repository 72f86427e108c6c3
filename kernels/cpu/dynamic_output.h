// Outputs of kernels whose shapes depend on data.
#pragma once

#include <algorithm>
#include <vector>

#include "base/status.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/kernel.h"

namespace floe::kernels {

// `values` in row-major order as output k; their number is that of `shape`.
template <class T, class A>
absl::Status Give(const KernelContext& ctx, int k, const std::vector<T, A>& values,
                  const Shape& shape) {
  FLOE_ASSIGN_OR_RETURN(const TensorView out, ctx.allocator->Allocate(k, kDTypeOf<T>, shape));
  std::copy(values.begin(), values.end(), out.as<T>());
  return absl::OkStatus();
}
template <class T, class A>
absl::Status Give(const KernelContext& ctx, int k, const std::vector<T, A>& values) {
  return Give(ctx, k, values, Shape({static_cast<int64_t>(values.size())}));
}

// Integers as output k of type int32 or int64.
inline absl::Status GiveInts(const KernelContext& ctx, int k, DType dtype,
                             const std::vector<int64_t>& values, const Shape& shape) {
  if (dtype != DType::kInt32) return Give(ctx, k, values, shape);
  return Give(ctx, k, std::vector<int32_t>(values.begin(), values.end()), shape);
}
inline absl::Status GiveInts(const KernelContext& ctx, int k, DType dtype,
                             const std::vector<int64_t>& values) {
  return GiveInts(ctx, k, dtype, values, Shape({static_cast<int64_t>(values.size())}));
}

}  // namespace floe::kernels
