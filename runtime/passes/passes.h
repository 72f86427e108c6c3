// Graph -> graph rewrites run once at load, before kernels are chosen. Each is a file of its own
// with a test.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kernels/kernel.h"
#include "model/graph.h"

namespace floe {

// Keeps what the outputs need; inputs stay in any case. Control edges are followed, so that
// branches keep their pivots. `keep_effects`: nodes that run for their effect stay too; without it
// only those that an output waits for.
void Prune(Graph* graph, bool keep_effects = true);

// True for ops with an effect, and for control flow around one.
bool HasEffect(const Node& node);

// Replaces nodes whose inputs are all constants by their values, computed by the kernels. A Switch
// on a constant predicate and the Merge behind it go away with the dead branch. `inputs`: types of
// graph->inputs. INVALID_ARGUMENT names the node when types contradict each other, or an output
// lies in a dead branch.
absl::Status FoldConstants(Graph* graph, absl::Span<const TensorType> inputs,
                           const KernelOptions& options);

// Rebuilds the Switch/Merge pairs of v1 `cond` as If nodes with subgraphs. UNIMPLEMENTED names the
// Switch or Merge that has no such form.
absl::Status StructureConditionals(Graph* graph);

// Uses of Identity and its like go to the original.
void RemoveIdentities(Graph* graph);

// MatMul or Conv2D + BiasAdd/Add of a constant vector + activation becomes one node ("fused_bias",
// "fused_activation").
void FuseEpilogues(Graph* graph);

}  // namespace floe
