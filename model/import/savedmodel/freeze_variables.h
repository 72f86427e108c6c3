// Variables of a GraphDef become constants, with everything they pass through: handles that are
// passed to functions and branches become values, and what reads them an Identity or a gather.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tensorflow {
class GraphDef;
class NodeDef;
}  // namespace tensorflow

namespace floe {

struct FrozenVariables {
  // Nodes of the graph that cannot be, with the reason: they assign, or need what does. Such a node
  // is left as an op that nobody knows, without inputs.
  std::map<std::string, absl::Status> refused;
};

// Rewrites all nodes of the graph and the functions they call; a variable becomes a Const without
// a value, whose kVariableAttr (graphdef.h) has its SharedName; other functions are dropped. A
// function is there once for each set of types that it is called with. RESOURCE_EXHAUSTED for calls
// that multiply without end.
absl::StatusOr<FrozenVariables> FreezeVariables(tensorflow::GraphDef* graph);

}  // namespace floe
