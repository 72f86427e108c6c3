// v1 while loops (Enter, Merge, Switch, LoopCond, NextIteration, Exit) -> While nodes with
// subgraphs.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "model/graph.h"

namespace floe {

// The graph's only backward edges are those from NextIteration to Merge. Inner frames first;
// afterwards none of the six ops is left and the graph is in topological order. Exits stay as
// Identity nodes, so that their names can be fetched. `values` (node numbers, -1 for none) is kept
// up to date. UNIMPLEMENTED names the node and frame that have no such form.
absl::Status StructureLoops(Graph* graph, std::vector<int>* values);

}  // namespace floe
