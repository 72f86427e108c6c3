#include "model/graph.h"

#include <functional>
#include <queue>

#include "absl/strings/str_cat.h"
#include "model/op_def.h"

namespace floe {

std::string TensorNameOf(const std::string& node, int output) {
  return output == 0 ? node : absl::StrCat(node, ":", output);
}

bool SortTopologically(Graph* graph, std::vector<int>* moved) {
  const int n = graph->size();
  std::vector<int> missing(n, 0), position(n, -1), order;
  std::vector<std::vector<int>> users(n);
  for (int i = 0; i < n; ++i) {
    const Node& node = graph->node(i);
    for (const ValueRef& in : node.inputs) users[in.node].push_back(i);
    for (int control : node.control_inputs) users[control].push_back(i);
    missing[i] = static_cast<int>(node.inputs.size() + node.control_inputs.size());
  }
  std::priority_queue<int, std::vector<int>, std::greater<int>> ready;
  for (int i = 0; i < n; ++i) {
    if (missing[i] == 0) ready.push(i);
  }
  while (!ready.empty()) {
    const int i = ready.top();
    ready.pop();
    position[i] = static_cast<int>(order.size());
    order.push_back(i);
    for (int user : users[i]) {
      if (--missing[user] == 0) ready.push(user);
    }
  }
  if (static_cast<int>(order.size()) != n) return false;
  Graph sorted;
  for (int i : order) {
    Node node = std::move(graph->mutable_node(i));
    for (ValueRef& in : node.inputs) in.node = position[in.node];
    for (int& control : node.control_inputs) control = position[control];
    sorted.Add(std::move(node));
  }
  for (int input : graph->inputs) sorted.inputs.push_back(position[input]);
  for (const ValueRef& out : graph->outputs)
    sorted.outputs.push_back({position[out.node], out.output});
  *graph = std::move(sorted);
  if (moved != nullptr) *moved = std::move(position);
  return true;
}

std::string DebugString(const Graph& graph) {
  std::string out;
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(i);
    absl::StrAppend(&out, i, " ", node.op->name, " ", node.name, "(");
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      absl::StrAppend(&out, k == 0 ? "" : ", ", node.inputs[k].node, ":", node.inputs[k].output);
    }
    absl::StrAppend(&out, ")\n");
  }
  return out;
}

}  // namespace floe
