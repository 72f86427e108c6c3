// What every graph must be before passes and compilation may look at it: checked where one comes
// from a file that stores graphs as they are.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "model/graph.h"

namespace floe {

// Bounds of a graph with its subgraphs, each counted as often as it is used.
inline constexpr int kMaxGraphDepth = 64;
inline constexpr int64_t kMaxGraphNodes = 4'000'000;

// INVALID_ARGUMENT naming the node unless: names are unique; every op takes that many inputs and
// has that many outputs; inputs and control inputs are of earlier nodes and exist; constants have a
// value of their dtype; If, Case and While have the subgraphs they need, with matching inputs and
// outputs, and nothing else has any; `graph.inputs` are distinct Input nodes; depth and size are
// within the bounds. In subgraphs every Input node is an input.
absl::Status VerifyGraph(const Graph& graph);

// INVALID_ARGUMENT naming signature and key unless every tensor exists, keys are distinct, inputs
// are distinct placeholders with a dtype, and defaults are of that dtype.
absl::Status VerifySignatures(const Graph& graph, const std::vector<SignatureDef>& signatures);

}  // namespace floe
