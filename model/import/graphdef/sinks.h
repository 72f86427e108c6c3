// What a graph without a signature gives: values that nothing consumes.
#pragma once

#include <string>
#include <vector>

#include "model/graph.h"

namespace floe {

// Nodes that nothing consumes, as tensor names in file order. NoOp, Assert, Const and Placeholder
// are left out, and what training leaves behind (summaries, savers, queues, assignments). So are
// values that depend on no input unless there are only such.
std::vector<std::string> SinkNames(const Graph& graph);

}  // namespace floe
