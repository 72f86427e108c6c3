#include "model/import/savedmodel/closure.h"

#include "model/import/savedmodel/node_names.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace floe {

using tensorflow::NodeDef;

GraphClosure::GraphClosure(const tensorflow::GraphDef& graph) {
  for (const NodeDef& node : graph.node()) index_.emplace(node.name(), &node);
}

const NodeDef* GraphClosure::Find(std::string_view node) const {
  const auto found = index_.find(node);
  return found == index_.end() ? nullptr : found->second;
}

GraphClosure::Names GraphClosure::Needed(const std::vector<std::string>& tensors,
                                         const std::set<std::string>& fed) const {
  Names needed;
  std::vector<const NodeDef*> open;
  const auto add = [&](const std::string& tensor) {
    if (fed.count(CanonicalTensor(tensor)) != 0) return;
    if (const NodeDef* const node = Find(SplitInput(tensor).node)) open.push_back(node);
  };
  for (const std::string& tensor : tensors) add(tensor);
  while (!open.empty()) {
    const NodeDef* const node = open.back();
    open.pop_back();
    if (!needed.insert(node->name()).second) continue;
    for (const std::string& input : node->input()) add(input);
  }
  return needed;
}

std::string CanonicalTensor(const std::string& tensor) {
  const size_t size = tensor.size();
  return size > 2 && tensor.compare(size - 2, 2, ":0") == 0 ? tensor.substr(0, size - 2) : tensor;
}

void KeepNodes(const GraphClosure::Names& kept, tensorflow::GraphDef* graph) {
  auto* const nodes = graph->mutable_node();
  int count = 0;
  for (int i = 0; i < nodes->size(); ++i) {
    if (kept.count(nodes->Get(i).name()) != 0) nodes->SwapElements(i, count++);
  }
  nodes->DeleteSubrange(count, nodes->size() - count);
}

}  // namespace floe
