// Two recurrent layers that read one sequence, and do not wait for each other, become one step,
// which may run them at the same time: the directions of a Bidirectional.
#include <algorithm>
#include <map>
#include <vector>

#include "model/op_def.h"
#include "model/ops/recurrent_pair.h"
#include "runtime/passes/passes.h"

namespace floe {
namespace {

bool IsLayer(const Node& node) {
  return node.op->name == "FusedRecurrent" && node.control_inputs.empty();
}

// Whether node `later` needs a value of node `earlier`. The graph is in topological order.
bool Needs(const Graph& graph, int later, int earlier) {
  std::vector<bool> needed(later + 1, false);
  needed[later] = true;
  for (int i = later; i > earlier; --i) {
    if (!needed[i]) continue;
    for (const ValueRef& in : graph.node(i).inputs) needed[in.node] = true;
    for (const int control : graph.node(i).control_inputs) needed[control] = true;
  }
  return needed[earlier];
}

bool HasReaderOfControl(const Graph& graph, int node) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](const Node& reader) {
    return std::count(reader.control_inputs.begin(), reader.control_inputs.end(), node) != 0;
  });
}

// By the second layer: the first. Each layer is in one pair at most.
std::map<int, int> FindPairs(const Graph& graph) {
  std::map<int, int> pairs;
  std::map<ValueRef, int> open;  // by sequence: a layer without a partner
  for (int i = 0; i < graph.size(); ++i) {
    if (!IsLayer(graph.node(i)) || HasReaderOfControl(graph, i)) continue;
    const auto [first, none] = open.try_emplace(graph.node(i).inputs[0], i);
    if (none) continue;
    if (Needs(graph, i, first->second)) {
      first->second = i;
    } else {
      pairs[i] = first->second;
      open.erase(first);
    }
  }
  return pairs;
}

}  // namespace

void PairRecurrent(Graph* graph) {
  const std::map<int, int> pairs = FindPairs(*graph);
  if (pairs.empty()) return;
  Graph paired = *graph;
  for (const auto& [second, first] : pairs)
    paired.mutable_node(first) = ops::PairRecurrent(graph->node(first), graph->node(second));
  const auto move = [&](ValueRef* ref) {
    const auto pair = pairs.find(ref->node);
    if (pair != pairs.end()) *ref = {pair->second, ops::PairedLayer::kOutputs + ref->output};
  };
  for (Node& node : paired.mutable_nodes())
    for (ValueRef& in : node.inputs) move(&in);
  for (ValueRef& out : paired.outputs) move(&out);
  if (SortTopologically(&paired)) *graph = std::move(paired);
}

}  // namespace floe
