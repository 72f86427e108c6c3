// Types of values inside a graph, as far as its ops and attributes tell before anything is
// compiled.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "model/graph.h"

namespace floe {

// The types of values, in order; dtype kInvalid where nothing tells it. Ops that floe does not
// support are known by their attributes. Never fails: what contradicts itself has no type.
std::vector<TensorType> TypesOfValues(const Graph& graph, absl::Span<const ValueRef> values);

}  // namespace floe
