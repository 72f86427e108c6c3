#include "kernels/cpu/sparse/sparse_places.h"

#include "absl/strings/str_cat.h"

namespace floe::kernels {

absl::Status ReadPlaces(const TensorView& indices, const TensorView& values,
                        const TensorView& shape, SparsePlaces* places) {
  constexpr size_t kMostDims = 254;
  FLOE_RETURN_IF_ERROR(ReadInts(indices, &places->indices));
  FLOE_RETURN_IF_ERROR(ReadInts(shape, &places->shape));
  places->count = values.elements();
  const int64_t rank = places->rank();
  if (places->shape.size() > kMostDims || indices.shape != Shape({places->count, rank}))
    return absl::InvalidArgumentError(absl::StrCat("indices ", indices.shape.ToString(), " for ",
                                                   places->count, " values in ", rank, " dims"));
  for (const int64_t dim : places->shape) {
    if (dim < 0) return absl::InvalidArgumentError(absl::StrCat("a dense shape with ", dim));
  }
  for (int64_t i = 0; i < places->count * rank; ++i) {
    const int64_t index = places->indices[i], dim = places->shape[i % rank];
    if (index < 0 || index >= dim)
      return absl::InvalidArgumentError(absl::StrCat(
          "index ", index, " is out of bounds of the dense shape, not in [0, ", dim, ")"));
  }
  return absl::OkStatus();
}

}  // namespace floe::kernels
