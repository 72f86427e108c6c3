// Types of values inside a graph, as far as its ops and attributes tell before anything is
// compiled.
#pragma once

#include <vector>

#include "model/graph.h"

namespace floe {

// The type of one value; dtype kInvalid where nothing tells it. Ops that floe does not support are
// known by their attributes. Never fails: what contradicts itself has no type.
TensorType TypeOfValue(const Graph& graph, ValueRef value);

}  // namespace floe
