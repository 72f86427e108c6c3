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

// Whether the node's input 0 chooses among its subgraphs, which get the others: of If and Case.
bool HasPredicate(const Node& node);

// The subgraph that an If or a Case runs for this predicate or index.
absl::StatusOr<size_t> BranchTaken(const Node& node, const TensorView& value);

}  // namespace floe
