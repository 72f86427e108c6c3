// Which nodes of a GraphDef some tensors need.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace tensorflow {
class GraphDef;
class NodeDef;
}  // namespace tensorflow

namespace floe {

// Names and nodes are views into the graph, which outlives this and keeps its nodes.
class GraphClosure {
 public:
  explicit GraphClosure(const tensorflow::GraphDef& graph);

  using Names = std::unordered_set<std::string_view>;
  // Nodes that the tensors need; what lies above a tensor of `fed` ("node" or "node:1") is not
  // needed for its sake. Names of no node are left out.
  Names Needed(const std::vector<std::string>& tensors, const std::set<std::string>& fed) const;
  const tensorflow::NodeDef* Find(std::string_view node) const;

 private:
  std::unordered_map<std::string_view, const tensorflow::NodeDef*> index_;
};

// "node" for "node:0".
std::string CanonicalTensor(const std::string& tensor);

// Drops the nodes that are not in `kept`.
void KeepNodes(const GraphClosure::Names& kept, tensorflow::GraphDef* graph);

}  // namespace floe
