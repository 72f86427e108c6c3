// Graph: floe's intermediate representation. SSA values with dtype and partly known shape.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/attrs.h"
#include "model/list_type.h"
#include "model/shape.h"

namespace floe {

struct OpDef;

struct TensorType {
  DType dtype = DType::kInvalid;
  SymShape shape = SymShape::UnknownRank();
  ListTypePtr list = nullptr;
  bool operator==(const TensorType& o) const {
    return dtype == o.dtype && shape == o.shape && SameLists(list, o.list);
  }
};

// Output `output` of node `node` of the same graph.
struct ValueRef {
  int node = -1;
  int output = 0;
  bool operator==(const ValueRef& o) const { return node == o.node && output == o.output; }
  bool operator<(const ValueRef& o) const {
    return node != o.node ? node < o.node : output < o.output;
  }
};

class Graph;

struct Node {
  std::string name;           // the file's name, unique in its graph; used in every message
  const OpDef* op = nullptr;  // static
  Attrs attrs;
  std::vector<ValueRef> inputs;
  // Nodes whose branch this one shares (TensorFlow's control edges); used and cleared when control
  // flow is structured.
  std::vector<int> control_inputs;
  int num_outputs = 1;
  std::vector<std::shared_ptr<const Graph>>
      subgraphs;  // If: {then, else}; While: {condition, body}
};

// Nodes in topological order: inputs refer to earlier nodes only.
// Threading: written by one thread during import and passes, then shared as const.
class Graph {
 public:
  // Appends and returns the index. Inputs must be of earlier nodes.
  int Add(Node node) {
    nodes_.push_back(std::move(node));
    return static_cast<int>(nodes_.size()) - 1;
  }
  const std::vector<Node>& nodes() const { return nodes_; }
  std::vector<Node>& mutable_nodes() { return nodes_; }
  const Node& node(int index) const { return nodes_[index]; }
  Node& mutable_node(int index) { return nodes_[index]; }
  int size() const { return static_cast<int>(nodes_.size()); }

  // Nodes of op "Input" in feeding order, and the values to fetch.
  std::vector<int> inputs;
  std::vector<ValueRef> outputs;

 private:
  std::vector<Node> nodes_;
};

// Restores topological order after nodes were replaced in place; keeps the relative order
// otherwise. False on a cycle, which leaves the graph as it was. `moved`, when given, receives each
// old node's new number.
bool SortTopologically(Graph* graph, std::vector<int>* moved = nullptr);

// Multi-line listing for tests and tools: index, name, op, inputs.
std::string DebugString(const Graph& graph);

// One named tensor of a signature.
struct SignatureTensor {
  std::string key;          // what clients write
  std::string tensor_name;  // "node" or "node:1" in the graph
  TensorType type;
  bool optional = false;  // inputs: may be left out
  Tensor default_value;   // of an optional input that an output needs
};

// What callers feed and fetch. `inputs`/`outputs` in the order of the file.
struct SignatureDef {
  std::string name = "serving_default";
  std::string method = "tensorflow/serving/predict";
  std::vector<SignatureTensor> inputs, outputs;
};

// "name" for output 0, "name:k" for others.
std::string TensorNameOf(const std::string& node, int output);

}  // namespace floe
