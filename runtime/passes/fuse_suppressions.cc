// Detectors drop the boxes of low scores, suppress what overlaps among the rest, and gather what
// is left. One op that knows the threshold needs neither the list of the rest nor their boxes.
#include <algorithm>
#include <limits>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/op_def.h"
#include "runtime/analyze.h"
#include "runtime/passes/graph_util.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/rebuild.h"

namespace floe {
namespace {

struct SuppressionMatch {
  // Of a suppression: what it chose from before boxes were dropped, and the threshold.
  ValueRef boxes, scores, threshold;
  // Of a Gather of what was chosen: where that was gathered from.
  ValueRef data;
};

class SuppressionFinder {
 public:
  SuppressionFinder(const Graph& graph, const Analysis& analysis)
      : graph_(graph), analysis_(analysis), uses_(graph) {}

  // By the node that is replaced.
  std::map<int, SuppressionMatch> Find() {
    for (int i = 0; i < graph_.size(); ++i) Match(i);
    return std::move(matches_);
  }

 private:
  const Node& NodeOf(ValueRef ref) const { return graph_.node(ref.node); }
  bool Is(ValueRef ref, const char* op) const {
    return NodeOf(ref).op->name == op && NodeOf(ref).control_inputs.empty();
  }

  // Whether `ref` is made of elements of dim 0 of input 0, those whose numbers are input 1.
  bool IsGather(ValueRef ref) const {
    if (!Is(ref, "GatherV2") && !Is(ref, "Gather")) return false;
    const Node& node = NodeOf(ref);
    if (node.attrs.Int("batch_dims") != 0) return false;
    return node.inputs.size() == 2 || IntOf(graph_, node.inputs[2]) == 0;
  }

  // The threshold when `indices` are the places of a vector's elements above one.
  ValueRef ThresholdOf(ValueRef indices, ValueRef scores) const {
    if (!Is(indices, "Reshape") && !Is(indices, "Squeeze")) return {};
    const Node& flat = NodeOf(indices);
    if (flat.op->name == "Reshape") {
      if (IntsOf(graph_, flat.inputs[1]) != std::vector<int64_t>{-1}) return {};
    } else if (flat.attrs.Ints("squeeze_dims") != std::vector<int64_t>{1} &&
               flat.attrs.Ints("squeeze_dims") != std::vector<int64_t>{-1}) {
      return {};  // a single index would become a scalar
    }
    const ValueRef where = flat.inputs[0];
    if (!Is(where, "Where")) return {};
    const ValueRef above = NodeOf(where).inputs[0];
    const bool less = Is(above, "Less");
    if (!less && !Is(above, "Greater")) return {};
    const ValueRef threshold = NodeOf(above).inputs[less ? 0 : 1];
    const SymShape& shape = analysis_.at(threshold).type.shape;
    const bool single =
        shape.rank_known() && (shape.rank() == 0 || (shape.rank() == 1 && shape.dim(0) == Dim(1)));
    return single && NodeOf(above).inputs[less ? 1 : 0] == scores ? threshold : ValueRef{};
  }

  void Match(int i) {
    const Node& node = graph_.node(i);
    if ((node.op->name != "NonMaxSuppressionV2" && node.op->name != "NonMaxSuppressionV3") ||
        !node.control_inputs.empty() || uses_.is_output[i] ||
        analysis_.at(node.inputs[1]).type.dtype != DType::kFloat32 || !IsGather(node.inputs[0]) ||
        !IsGather(node.inputs[1]))
      return;
    const Node &boxes = NodeOf(node.inputs[0]), &scores = NodeOf(node.inputs[1]);
    const ValueRef indices = boxes.inputs[1];
    if (scores.inputs[1] != indices) return;
    const ValueRef threshold = ThresholdOf(indices, scores.inputs[0]);
    if (threshold.node < 0) return;
    // Everybody who reads the choice must be able to do with places among all boxes.
    std::map<int, SuppressionMatch> readers;
    for (const int reader : uses_.users[i]) {
      const Node& gather = graph_.node(reader);
      if (gather.op->name == "Shape" || gather.op->name == "Size") continue;
      if (!IsGather({reader, 0}) || gather.inputs[1] != ValueRef{i, 0} ||
          !IsGather(gather.inputs[0]) || NodeOf(gather.inputs[0]).inputs[1] != indices)
        return;
      readers[reader].data = NodeOf(gather.inputs[0]).inputs[0];
    }
    matches_[i] = {boxes.inputs[0], scores.inputs[0], threshold, {}};
    matches_.merge(readers);
  }

  const Graph& graph_;
  const Analysis& analysis_;
  const Uses uses_;
  std::map<int, SuppressionMatch> matches_;
};

}  // namespace

absl::Status FuseSuppressions(Graph* graph, absl::Span<const TensorType> inputs,
                              const KernelOptions& options) {
  if (std::none_of(graph->nodes().begin(), graph->nodes().end(), [](const Node& node) {
        return node.op->name == "NonMaxSuppressionV2" || node.op->name == "NonMaxSuppressionV3";
      }))
    return absl::OkStatus();
  FLOE_ASSIGN_OR_RETURN(const Analysis analysis, AnalyzeWithRows(*graph, inputs, options));
  *graph = ReplaceMatches(
      *graph, SuppressionFinder(*graph, analysis).Find(),
      [&](int i, const SuppressionMatch& match, Rebuild* rebuild) {
        Node node = graph->node(i);
        if (match.data.node >= 0) {
          for (ValueRef& input : node.inputs) input = rebuild->Map(input);
          node.inputs[0] = rebuild->Map(match.data);
          return node;
        }
        const ValueRef lowest =
            node.inputs.size() > 4
                ? rebuild->Map(node.inputs[4])
                : ValueRef{
                      rebuild->Append(ConstNode(
                          absl::StrCat(node.name, "/lowest"),
                          Tensor::Scalar(DType::kFloat32, std::numeric_limits<float>::lowest()))),
                      0};
        node.op = FindOp("FilteredNonMaxSuppression");
        node.inputs = {rebuild->Map(match.boxes),
                       rebuild->Map(match.scores),
                       rebuild->Map(node.inputs[2]),
                       rebuild->Map(node.inputs[3]),
                       lowest,
                       rebuild->Map(match.threshold)};
        return node;
      });
  return absl::OkStatus();
}

}  // namespace floe
