// Changes to GraphDefs that keep enough of their sense to reach behind the importer's first checks.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tensorflow/core/framework/graph.pb.h"
#include "tests/fuzz/proto_mutator.h"

namespace floe::fuzz {

// Nodes and attributes seen so far, by op and by name: what a new node is made like.
class Templates {
 public:
  static Templates& Shared();

  void Learn(const tensorflow::GraphDef& graph);
  // A node as some seed had it; null when none was seen.
  const tensorflow::NodeDef* Node(Random& random) const;
  const tensorflow::AttrValue* Attr(const std::string& name, Random& random) const;
  const std::string& AttrName(Random& random) const;

 private:
  void LearnNode(const tensorflow::NodeDef& node);
  std::map<std::string, std::vector<tensorflow::NodeDef>> nodes_;  // by op
  std::vector<std::string> ops_;
  std::map<std::string, std::vector<tensorflow::AttrValue>> attrs_;
  std::vector<std::string> attr_names_;
};

class GraphMutator {
 public:
  GraphMutator(tensorflow::GraphDef* graph, Random* random)
      : graph_(*graph), random_(*random), fields_(random) {}

  void Mutate();  // one change
  // Takes nodes, with what they read, and functions of `other` over.
  void Splice(const tensorflow::GraphDef& other);

 private:
  using Nodes = google::protobuf::RepeatedPtrField<tensorflow::NodeDef>;
  // The graph's own nodes, or a function's; `values` are names that inputs may have there.
  struct Scope {
    Nodes* nodes;
    tensorflow::FunctionDef* function;  // null: the graph itself
    std::vector<std::string> values;
  };
  Scope PickScope();
  std::string Value(const Scope& scope);
  std::string OutputOf(const Scope& scope, const std::string& node);
  std::string FreshName();
  tensorflow::NodeDef* AnyNode(const Scope& scope);

  void AddNode();
  void InsertOnEdge();
  void RemoveNode();
  void DuplicateNode();
  void ChangeInputs();
  void ChangeOp();
  void ChangeAttr();
  void ChangeTensor();
  void ChangeDtypes();
  void ChangePlaceholder();
  void ChangeLibrary();

  void NewNodeLike(const tensorflow::NodeDef& node, Scope& scope, const std::string& first_input);
  void MutateAttr(tensorflow::AttrValue* value);
  void MutateTensor(tensorflow::TensorProto* tensor);
  void MutateShape(tensorflow::TensorShapeProto* shape);

  tensorflow::GraphDef& graph_;
  Random& random_;
  ProtoMutator fields_;
};

}  // namespace floe::fuzz
