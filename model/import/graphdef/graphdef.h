// GraphDef (binary or text) -> Graph, before signatures are chosen.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "model/graph.h"

namespace tensorflow {
class GraphDef;
}

namespace floe {

// Translates nodes in topological order. Switch and Merge stay as they are, with control edges
// kept, until the compiler structures them; ops floe does not know become "Unsupported" nodes,
// which only matter if something needs them. Constants are moved out of `def`. INVALID_ARGUMENT
// names the node: duplicate or empty names, missing inputs, cycles, attributes that contradict
// themselves.
absl::StatusOr<Graph> GraphFromGraphDef(tensorflow::GraphDef* def);

// Nodes that nothing consumes, as tensor names in file order; NoOp, Assert, Const and Placeholder
// left out, and values that depend on no input unless there are only such.
std::vector<std::string> SinkNames(const Graph& graph);

}  // namespace floe
