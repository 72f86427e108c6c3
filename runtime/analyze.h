// One walk over a graph that settles, for given input types, every value's type, the values known without running, and
// which values keep request rows apart.
#pragma once

#include <string>
#include <vector>

#include "kernels/kernel.h"
#include "model/graph.h"
#include "model/op_def.h"

namespace floe {

struct Analysis {
  std::vector<std::vector<ValueInfo>> values;  // [node][output]
  std::vector<RowMark> marks;                  // [node]
  std::vector<int> culprit;                    // [node]: where rows were first mixed; -1 when they were not
  std::vector<std::string> subgraph_culprit;   // [node]: inside an If, what mixed them

  const ValueInfo& at(ValueRef ref) const { return values[ref.node][ref.output]; }
};

// `inputs` and `marks` are those of graph.inputs, in order. Errors name the node.
absl::StatusOr<Analysis> Analyze(const Graph& graph, absl::Span<const ValueInfo> inputs, absl::Span<const RowMark> marks,
                                 const KernelOptions& options);

// The infos of one node's outputs, given its inputs'. Shared with constant folding.
absl::StatusOr<std::vector<ValueInfo>> InferNode(const Node& node, absl::Span<const ValueInfo> inputs, const KernelOptions& options);

}  // namespace floe
