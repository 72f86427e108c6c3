// Padding: rows of unequal non-batch dims laid into larger ones.
#pragma once

#include "absl/status/statusor.h"
#include "model/tensor.h"

namespace floe::server {

// A scalar of that dtype. INVALID_ARGUMENT when the value has none there (300 as uint8, 0.5 as an
// integer) and for dtypes that are not padded (strings, handles).
absl::StatusOr<Tensor> PadValue(DType dtype, double value);

// Raises the non-batch dims of `shape` to those of `other`; dim 0 stays. Ranks are equal.
void RaiseNonBatchDims(const Shape& other, Shape* shape);

// Copies `from` to the start of every axis of `to` and fills the rest with `pad`. Equal ranks,
// dtypes and dims 0; the other dims of `to` are not smaller.
void CopyPadded(const TensorView& from, const TensorView& to, const Tensor& pad);

}  // namespace floe::server
