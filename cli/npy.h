// NumPy's .npy format: one array, its dtype and shape. Depends on model/tensor.h alone.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "model/tensor.h"

namespace floe::cli {

// What the header of an array says. `data_bytes` is what follows it.
struct NpyHeader {
  DType dtype = DType::kInvalid;
  bool fortran_order = false;
  Shape shape;
  int64_t data_bytes = 0;
};

// Reads up to `size` bytes to `to` and returns how many (0 at the end).
using ByteSource = std::function<absl::StatusOr<size_t>(void* to, size_t size)>;

// Reads one array of `total_bytes` bytes, header included (format versions 1 to 3). Nothing is
// allocated for the data before the declared shape was compared with the bytes there are. Fortran
// order becomes C order; bools become 0 or 1. "<V2" is read as bfloat16 (what NumPy writes for
// ml_dtypes.bfloat16). INVALID_ARGUMENT for a malformed file; UNIMPLEMENTED for pickled objects,
// structured, text and big-endian arrays, with what to do instead.
absl::StatusOr<Tensor> ReadNpy(const ByteSource& source, uint64_t total_bytes);
absl::StatusOr<Tensor> ParseNpy(const std::string& bytes);
// NOT_FOUND when there is no such file; messages begin with the path.
absl::StatusOr<Tensor> ReadNpyFile(const std::string& path);

// The header for an array (format version 1), padded as NumPy does; the row-major data follows it.
// INVALID_ARGUMENT for strings and handles.
absl::StatusOr<std::string> NpyHeaderFor(DType dtype, const Shape& shape);
absl::StatusOr<std::string> SerializeNpy(const TensorView& view);

}  // namespace floe::cli
