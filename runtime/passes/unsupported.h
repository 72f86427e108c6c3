// The error of a graph that needs what floe does not have.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "model/graph.h"

namespace floe {

struct UnsupportedNode {
  std::string name;
  std::string what;  // its op, or why there is no kernel for it
};

// UNIMPLEMENTED: for each op some of the nodes, and how many there are. A graph that needs
// variables is not frozen, and the error says how to freeze it. At least one node.
absl::Status UnsupportedNodes(const std::vector<UnsupportedNode>& nodes);

// Appends those of ops that floe does not know in the loop's or conditional's bodies, and in bodies
// below these, as far as their results need them.
void AddUnsupportedInside(const Node& node, std::vector<UnsupportedNode>* nodes);

}  // namespace floe
