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

// What of a file is asked for, as tensor names; names that the file lacks choose nothing.
struct GraphChoice {
  std::vector<std::string> fetches;  // empty: all there is
  std::vector<std::string> feeds;    // tensors that callers give: what lies above is not needed
  // Malformed nodes are no error, but "Unsupported" ones whose attribute
  // "why_unsupported" says what is wrong.
  bool keep_broken = false;
};

// A Const without a value may have it elsewhere, under the name that this attribute says.
inline constexpr const char* kVariableAttr = "_floe_variable";
using VariableValues = std::map<std::string, Tensor>;

// Translates nodes in topological order. Switch and Merge stay as they are, with control edges
// kept, until the compiler structures them. Ops floe does not know become "Unsupported" nodes,
// which only matter if something needs them. So do malformed nodes and loops without a form
// that `choice` does not need. Constants are moved out of `def`. INVALID_ARGUMENT names the node:
// duplicate or empty names, missing inputs, cycles, attributes that contradict themselves.
absl::StatusOr<Graph> GraphFromGraphDef(tensorflow::GraphDef* def, const GraphChoice& choice,
                                        const VariableValues* variables = nullptr);

}  // namespace floe
