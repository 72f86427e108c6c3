#include <algorithm>

#include "model/op_def.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/rebuild.h"

namespace floe {

bool HasEffect(const Node& node) {
  if (node.op->effect) return true;
  for (const auto& subgraph : node.subgraphs) {
    if (std::any_of(subgraph->nodes().begin(), subgraph->nodes().end(), HasEffect)) return true;
  }
  return false;
}

void Prune(Graph* graph, bool keep_effects) {
  std::vector<bool> needed(graph->size(), false);
  for (int i = 0; i < graph->size() && keep_effects; ++i) needed[i] = HasEffect(graph->node(i));
  for (int input : graph->inputs) needed[input] = true;
  for (const ValueRef& output : graph->outputs) needed[output.node] = true;
  for (int i = graph->size() - 1; i >= 0; --i) {
    if (!needed[i]) continue;
    for (const ValueRef& in : graph->node(i).inputs) needed[in.node] = true;
    for (int control : graph->node(i).control_inputs) needed[control] = true;
  }
  Rebuild rebuild(*graph);
  for (int i = 0; i < graph->size(); ++i) {
    if (needed[i]) rebuild.Keep(i);
  }
  *graph = rebuild.Finish();
}

}  // namespace floe
