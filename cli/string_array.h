// Strings inside .npz files: one 1-D uint8 array, elements in row-major order, each a little-endian
// u32 length and then that many bytes. The array does not hold the shape; whoever reads it knows it
// from elsewhere.
#pragma once

#include "absl/status/statusor.h"
#include "model/tensor.h"

namespace floe::cli {

// A uint8 array of rank 1 -> a string tensor of rank 1. INVALID_ARGUMENT when a length points
// outside.
absl::StatusOr<Tensor> DecodeStrings(const Tensor& bytes);
Tensor EncodeStrings(const TensorView& strings);

// A rank-1 tensor under the declared shape: unknown rank keeps it flat, one unknown dim follows
// from the number of elements. INVALID_ARGUMENT when several dims are unknown or the number does
// not fit.
absl::StatusOr<Tensor> ShapeStrings(const Tensor& flat, const SymShape& declared);

}  // namespace floe::cli
