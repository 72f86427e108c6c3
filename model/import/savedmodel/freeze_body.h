// Freezing one list of nodes, a graph's or a function's: what freeze_variables.cc does for each.
#pragma once

#include <google/protobuf/repeated_field.h>

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/types.pb.h"

namespace floe {

// The dtype of the variable behind each value of a list; DT_INVALID where a value is no handle of a
// variable.
using Binding = std::vector<tensorflow::DataType>;

// The functions of a graph, frozen on demand.
class FunctionSource {
 public:
  struct Frozen {
    std::string name;  // the function that takes values in the place of handles
    Binding results;
  };
  virtual ~FunctionSource() = default;
  virtual bool Has(const std::string& name) const = 0;
  virtual absl::StatusOr<Frozen> Freeze(const std::string& name, const Binding& arguments) = 0;
  // Keeps a function as it is.
  virtual absl::Status Keep(const std::string& name) = 0;
  // The first value of a result; -1: there is no such result.
  virtual int ResultNumber(const std::string& name, std::string_view result) const = 0;
};

class BodyFreezer {
 public:
  using NodeDefs = google::protobuf::RepeatedPtrField<tensorflow::NodeDef>;
  // Both outlive this.
  BodyFreezer(NodeDefs* nodes, FunctionSource* functions, bool in_function);

  void BindArgument(const std::string& name, tensorflow::DataType dtype);
  // The first error of a node, named, ends it, unless `refused` is there to take them.
  absl::Status Run(std::map<std::string, absl::Status>* refused);
  // After Run: what a value is, and what it is called now.
  tensorflow::DataType BoundTo(const std::string& input) const;
  std::string Renamed(const std::string& input) const;

 private:
  using DataType = tensorflow::DataType;
  using NodeDef = tensorflow::NodeDef;

  std::vector<int> Order() const;
  int OutputNumber(const std::string& input) const;
  absl::Status Visit(NodeDef* node);
  absl::Status FreezeReader(NodeDef* node, const Binding& inputs);
  absl::Status FreezeFunctions(NodeDef* node, const Binding& inputs);
  absl::Status FreezeCall(NodeDef* node, const std::string& name, const Binding& inputs);
  absl::Status FreezeBranches(NodeDef* node, const Binding& inputs);
  absl::Status FreezeLoop(NodeDef* node, const Binding& inputs);
  absl::Status KeepFunctions(const NodeDef& node);
  bool FreezeReference(NodeDef* node, absl::Status* status);
  void BecomeGather(NodeDef* node, DataType dtype);
  void BecomeConstant(NodeDef* node);
  void BecomeTrue(NodeDef* node);
  void Bind(const NodeDef& node, Binding outputs) { bound_[node.name()] = std::move(outputs); }

  NodeDefs& nodes_;
  FunctionSource& functions_;
  const bool in_function_;
  std::unordered_map<std::string, int> index_;
  std::unordered_map<std::string, Binding> bound_;  // by node or argument, by output
  std::set<std::string> references_;                // nodes whose output is a variable itself
  std::map<std::string, std::string> renamed_;      // node -> its output argument's old name
  std::map<std::string, std::string> renamed_to_;
};

}  // namespace floe
