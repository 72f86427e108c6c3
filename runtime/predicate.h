// What control flow makes of the value it decides by, as TensorFlow's functional ops do.
#pragma once

#include <cstddef>

#include "absl/status/statusor.h"
#include "model/graph.h"
#include "model/tensor.h"

namespace floe {

// A scalar is true when it is not 0, or not the empty string; any other tensor when it has
// elements. `scalar_bool`: as in Switch and LoopCond, nothing else is taken. INVALID_ARGUMENT for a
// scalar of another type.
absl::StatusOr<bool> Truth(const TensorView& value, bool scalar_bool = false);

// The subgraph that an If or a Case runs for this predicate or index.
absl::StatusOr<size_t> BranchTaken(const Node& node, const TensorView& value);

}  // namespace floe
