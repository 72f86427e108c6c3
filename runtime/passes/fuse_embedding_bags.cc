// The Sum or Mean of the rows of a table that a Gather looks up, as text classifiers and
// recommenders write them.
#include <algorithm>
#include <map>

#include "base/status.h"
#include "model/op_def.h"
#include "runtime/analyze.h"
#include "runtime/passes/graph_util.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/rebuild.h"

namespace floe {
namespace {

bool IsSum(const Node& node) { return node.op->name == "Sum" || node.op->name == "Mean"; }

struct EmbeddingBagMatch {
  ValueRef table, indices;
};

// By the reduction that is replaced.
std::map<int, EmbeddingBagMatch> FindEmbeddingBags(const Graph& graph, const Analysis& analysis) {
  const Uses uses(graph);
  std::map<int, EmbeddingBagMatch> matches;
  for (int i = 0; i < graph.size(); ++i) {
    if (!IsSum(graph.node(i)) || graph.node(i).attrs.Bool("keep_dims")) continue;
    const ValueRef rows = graph.node(i).inputs[0];
    const Node& gather = graph.node(rows.node);
    if (gather.op->name != "GatherV2" || !gather.control_inputs.empty() ||
        gather.attrs.Int("batch_dims") != 0 || uses.OnlyUser(rows.node) != i)
      continue;
    const TensorType &table = analysis.at(gather.inputs[0]).type,
                     &indices = analysis.at(gather.inputs[1]).type;
    if (table.dtype != DType::kFloat32 || !table.shape.rank_known() || table.shape.rank() != 2 ||
        !indices.shape.rank_known() || indices.shape.rank() == 0)
      continue;
    const auto axis = IntOf(graph, gather.inputs[2]),
               summed = IntOf(graph, graph.node(i).inputs[1]);
    const int bag = indices.shape.rank() - 1;
    if ((axis == 0 || axis == -2) && (summed == bag || summed == -2))
      matches[i] = {gather.inputs[0], gather.inputs[1]};
  }
  return matches;
}

}  // namespace

absl::Status FuseEmbeddingBags(Graph* graph, absl::Span<const TensorType> inputs,
                               const KernelOptions& options) {
  if (std::none_of(graph->nodes().begin(), graph->nodes().end(), [&](const Node& node) {
        return IsSum(node) && graph->node(node.inputs[0].node).op->name == "GatherV2";
      }))
    return absl::OkStatus();
  FLOE_ASSIGN_OR_RETURN(const Analysis analysis, AnalyzeWithRows(*graph, inputs, options));
  *graph = ReplaceMatches(*graph, FindEmbeddingBags(*graph, analysis),
                          [&](int i, const EmbeddingBagMatch& match, Rebuild* rebuild) {
                            Node bag;
                            bag.name = graph->node(i).name;
                            bag.op = FindOp("EmbeddingBag");
                            bag.attrs.Set("T", DType::kFloat32);
                            bag.attrs.Set("mean", graph->node(i).op->name == "Mean");
                            bag.inputs = {rebuild->Map(match.table), rebuild->Map(match.indices)};
                            return bag;
                          });
  Prune(graph);
  return absl::OkStatus();
}

}  // namespace floe
