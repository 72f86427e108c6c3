// Builds small graphs for tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "model/graph.h"
#include "model/op_def.h"
#include "runtime/plan.h"

namespace floe {

inline const SymShape kRows4 = {Dim::Unknown(), 4};  // [rows, 4]

class TestGraph {
 public:
  ValueRef Input(const std::string& name, DType dtype, SymShape shape) {
    Node node;
    node.name = name;
    node.op = FindOp("Input");
    node.attrs.Set("dtype", dtype);
    node.attrs.Set("shape", shape);
    const int index = graph.Add(std::move(node));
    graph.inputs.push_back(index);
    signature.inputs.push_back(
        {.key = name, .tensor_name = name, .type = {dtype, std::move(shape)}});
    return {index, 0};
  }
  ValueRef Const(const std::string& name, const Tensor& value) {
    Node node;
    node.name = name;
    node.op = FindOp("Const");
    node.attrs.Set("dtype", value.dtype());
    node.attrs.Set("value", value);
    return {graph.Add(std::move(node)), 0};
  }
  ValueRef Floats(const std::string& name, const Shape& shape, const std::vector<float>& values) {
    return Const(name, Tensor::Vector(DType::kFloat32, values).Reshaped(shape));
  }
  ValueRef Ints(const std::string& name, const std::vector<int32_t>& values) {
    return Const(name, Tensor::Vector(DType::kInt32, values));
  }
  ValueRef Int(const std::string& name, int32_t value) {
    return Const(name, Tensor::Scalar(DType::kInt32, value));
  }

  ValueRef Op(const std::string& op, const std::string& name, std::vector<ValueRef> inputs,
              const std::vector<std::pair<std::string, AttrValue>>& attrs = {},
              std::vector<int> controls = {}) {
    Node node;
    node.name = name;
    node.op = FindOp(op);
    EXPECT_NE(node.op, nullptr) << op;
    node.inputs = std::move(inputs);
    node.control_inputs = std::move(controls);
    for (const auto& [key, value] : attrs) node.attrs.Set(key, value);
    node.num_outputs = node.op->outputs < 0 ? 1 : node.op->outputs;
    return {graph.Add(std::move(node)), 0};
  }
  void Output(ValueRef value) {
    graph.outputs.push_back(value);
    signature.outputs.push_back(
        {.key = graph.node(value.node).name, .tensor_name = graph.node(value.node).name});
  }
  std::vector<TensorType> InputTypes() const {
    std::vector<TensorType> types;
    for (const SignatureTensor& input : signature.inputs) types.push_back(input.type);
    return types;
  }
  std::shared_ptr<const CompiledSignature> Compile(const CompileOptions& options = {}) const {
    auto compiled = CompiledSignature::Compile(graph, signature, options);
    EXPECT_TRUE(compiled.ok()) << compiled.status();
    return compiled.ok() ? *compiled : nullptr;
  }

  Graph graph;
  SignatureDef signature;
};

// How many nodes have this op.
inline int CountOps(const Graph& graph, const std::string& op) {
  int n = 0;
  for (const Node& node : graph.nodes()) n += node.op->name == op ? 1 : 0;
  return n;
}

}  // namespace floe
