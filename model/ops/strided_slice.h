// The masks of StridedSlice, resolved for an input rank.
#pragma once

#include "absl/container/inlined_vector.h"
#include "model/op_def.h"

namespace floe::ops {

// One step through the specification, in order.
struct SliceDim {
  int axis = -1;        // of the input; -1: a new axis of size 1 in the output
  int entry = -1;       // of begin, end and strides; -1: the axis in full
  bool shrink = false;  // one element, no axis in the output
  bool begin_masked = false, end_masked = false;  // never of an axis that shrinks
};
using SliceDims = absl::InlinedVector<SliceDim, 8>;

struct SliceMasks {
  explicit SliceMasks(const Attrs& attrs);
  int64_t begin, end, ellipsis, new_axis, shrink;  // bit i: entry i
};

// INVALID_ARGUMENT when the specification has more entries than the input has axes, or two
// ellipses.
absl::StatusOr<SliceDims> ResolveStridedSlice(const SliceMasks& masks, int entries, int rank);

}  // namespace floe::ops
