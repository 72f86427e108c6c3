// Whole graphs as keys of maps.
#pragma once

#include <string>

#include "model/graph.h"

namespace floe {

// Equal only for graphs that compute the same outputs from the same inputs, whatever their nodes
// are called and in which order they are. Large constants count by address: such a key may not
// outlive them. Nodes that no output needs do not count.
std::string GraphKey(const Graph& graph);

}  // namespace floe
