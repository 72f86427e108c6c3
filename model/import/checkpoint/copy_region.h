// Slices of partitioned tensors: where they lie and what of them a part needs.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "model/import/checkpoint/slice_key.h"
#include "model/tensor.h"

namespace floe {

// The ranges with every length said. DATA_LOSS for ranges that are not of the shape.
absl::StatusOr<std::vector<SliceRange>> PlaceOfSlice(const std::vector<SliceRange>& ranges,
                                                     const Shape& whole);

// Elements that two places of one tensor share.
int64_t OverlapElements(const std::vector<SliceRange>& a, const std::vector<SliceRange>& b);

// Copies what `slice`, which lies at `place`, has of `region` into `out`, which is all of `region`.
// DATA_LOSS when the slice has another dtype or shape.
absl::Status CopyRegion(const Tensor& slice, const std::vector<SliceRange>& place,
                        const std::vector<SliceRange>& region, Tensor* out);

}  // namespace floe
