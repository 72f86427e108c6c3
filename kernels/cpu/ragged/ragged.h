// What the kernels of ragged tensors share.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "base/budget.h"
#include "kernels/kernel.h"

namespace floe::kernels {

using Splits = BudgetVector<int64_t>;

// Row splits: at least one, from 0 upwards; INVALID_ARGUMENT otherwise.
absl::StatusOr<Splits> ReadSplits(const TensorView& view);

// Inputs [first, first + count), each for the rows of the next; `values` has the rows of the last.
absl::StatusOr<std::vector<Splits>> ReadNestedSplits(const KernelContext& ctx, int first, int count,
                                                     const TensorView& values);

// Writes one element of an int32 or int64 tensor.
inline void PutInt(const TensorView& view, int64_t at, int64_t value) {
  if (view.dtype == DType::kInt32) {
    view.as<int32_t>()[at] = static_cast<int32_t>(value);
  } else {
    view.as<int64_t>()[at] = value;
  }
}

// Room for `rows` + 1 splits in output k; INVALID_ARGUMENT when int32 cannot count to `last`.
absl::StatusOr<TensorView> AllocateSplits(const KernelContext& ctx, int k, DType dtype,
                                          int64_t rows, int64_t last);

}  // namespace floe::kernels
