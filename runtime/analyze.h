// One walk over a graph that settles, for given input types, every value's type, the values known
// without running, and which values keep request rows independent.
#pragma once

#include <string>
#include <vector>

#include "kernels/kernel.h"
#include "model/flat_rows.h"
#include "model/graph.h"
#include "model/op_def.h"

namespace floe {

struct Analysis {
  std::vector<std::vector<ValueInfo>> values;  // [node][output]
  std::vector<std::vector<RowMark>> marks;     // [node][output]
  std::vector<std::vector<Flat>> flats;        // [node][output]: any number of elements a row
  std::vector<std::string>
      culprit;  // [node]: where rows were first mixed, "'name' (Op)"; empty when they were not

  const ValueInfo& at(ValueRef ref) const { return values[ref.node][ref.output]; }
  RowMark mark(ValueRef ref) const { return marks[ref.node][ref.output]; }
};

// `inputs` and `marks` are those of graph.inputs, in order. Errors name the node.
absl::StatusOr<Analysis> Analyze(const Graph& graph, absl::Span<const ValueInfo> inputs,
                                 absl::Span<const RowMark> marks, const KernelOptions& options);

// The same for inputs of which only the types are known.
absl::StatusOr<Analysis> AnalyzeTypes(const Graph& graph, absl::Span<const TensorType> inputs,
                                      const KernelOptions& options);

// AnalyzeTypes, with dim 0 of the first input that leaves it open called Dim::Rows(), so that sums
// and products of it can be followed and compared; without where that contradicts the graph.
absl::StatusOr<Analysis> AnalyzeWithRows(const Graph& graph, absl::Span<const TensorType> inputs,
                                         const KernelOptions& options);

// Whether an error of the analysis is one of the run that comes to the node: what a branch that is
// not taken holds refuses nothing. Limits and broken invariants are errors at once.
inline bool IsErrorOfRun(const absl::Status& status) {
  return !absl::IsResourceExhausted(status) && !absl::IsInternal(status) &&
         !absl::IsCancelled(status) && !absl::IsDeadlineExceeded(status);
}

// What a node with subgraphs (If, Case, While) gives for these inputs.
struct ControlAnalysis {
  std::vector<ValueInfo> values;  // by output
  std::vector<RowMark> marks;
  std::string culprit;     // where rows are mixed inside
  bool over_rows = false;  // a While that takes the rows one after the other
};
// If, Case: a branch that is known to be taken counts alone. While: types and marks are widened
// until the body gives back what it was given. Nothing is said of what a subgraph gives that is
// refused.
absl::StatusOr<ControlAnalysis> AnalyzeControl(const Node& node, absl::Span<const ValueInfo> inputs,
                                               absl::Span<const RowMark> marks,
                                               const KernelOptions& options);

// How many bytes of results InferNode may hand out as constants on this thread; without a scope a
// little. Of nested scopes the outermost counts.
class FoldingScope {
 public:
  explicit FoldingScope(int64_t bytes);
  ~FoldingScope();
  FoldingScope(const FoldingScope&) = delete;
  FoldingScope& operator=(const FoldingScope&) = delete;

 private:
  int64_t left_;
  bool outermost_;
};

// The infos of one node's outputs, given its inputs'. Shared with constant folding. Constants that
// are much larger than what they are made from, or more than the scope has left, are none: the run
// computes them.
absl::StatusOr<std::vector<ValueInfo>> InferNode(const Node& node,
                                                 absl::Span<const ValueInfo> inputs,
                                                 const KernelOptions& options);

}  // namespace floe
