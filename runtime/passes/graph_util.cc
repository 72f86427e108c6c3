#include "runtime/passes/graph_util.h"

#include <algorithm>
#include <set>

#include "model/op_def.h"

namespace floe {

const Tensor* ConstantOf(const Graph& graph, ValueRef ref) {
  const Node& node = graph.node(ref.node);
  return node.op->name == "Const" ? node.attrs.Find<Tensor>("value") : nullptr;
}

std::optional<std::vector<int64_t>> IntsOf(const Graph& graph, ValueRef ref) {
  const Tensor* value = ConstantOf(graph, ref);
  if (value == nullptr) return std::nullopt;
  const auto values = IntegerValues(value->view());
  if (!values.ok()) return std::nullopt;
  return *values;
}

std::optional<int64_t> IntOf(const Graph& graph, ValueRef ref) {
  const auto values = IntsOf(graph, ref);
  if (!values.has_value() || values->size() != 1) return std::nullopt;
  return (*values)[0];
}

Node ConstNode(const std::string& name, const Tensor& value) {
  Node node;
  node.name = name;
  node.op = FindOp("Const");
  node.attrs.Set("dtype", value.dtype());
  node.attrs.Set("value", value);
  return node;
}

Uses::Uses(const Graph& graph)
    : users(graph.size()), is_output(graph.size(), false), first_output_only(graph.size(), true) {
  for (int i = 0; i < graph.size(); ++i) {
    for (const ValueRef& in : graph.node(i).inputs) {
      users[in.node].push_back(i);
      if (in.output != 0) first_output_only[in.node] = false;
    }
    // Who waits for a node counts as a reader of something else than its value.
    for (int control : graph.node(i).control_inputs) first_output_only[control] = false;
  }
  for (const ValueRef& out : graph.outputs) {
    is_output[out.node] = true;
    if (out.output != 0) first_output_only[out.node] = false;
  }
}

bool OnlyReadInside(const Graph& graph, const Uses& uses, const std::set<int>& members, int root) {
  return std::all_of(members.begin(), members.end(), [&](int i) {
    if (!graph.node(i).control_inputs.empty()) return false;
    if (i == root) return uses.first_output_only[i];
    return !uses.is_output[i] && uses.first_output_only[i] &&
           std::all_of(uses.users[i].begin(), uses.users[i].end(),
                       [&](int user) { return members.count(user) != 0; });
  });
}

bool AlongAxis(const Tensor& constant, int rank, int axis, int64_t channels,
               std::vector<float>* values) {
  const Shape& shape = constant.shape();
  if (constant.dtype() != DType::kFloat32 || shape.rank() > rank || channels < 1) return false;
  for (int i = 0; i < shape.rank(); ++i) {
    const bool along = rank - shape.rank() + i == axis;
    if (shape.dim(i) != 1 && !(along && shape.dim(i) == channels)) return false;
  }
  const float* data = constant.as<float>();
  values->assign(static_cast<size_t>(channels), data[0]);
  if (constant.elements() == channels) values->assign(data, data + channels);
  return true;
}

bool TakesEpilogue(const Node& node) {
  static const std::set<std::string> names = {"MatMul",
                                              "BatchMatMul",
                                              "Conv2D",
                                              "DepthwiseConv2dNative",
                                              "Conv3D",
                                              "Conv2DBackpropInput",
                                              "Conv3DBackpropInputV2"};
  return names.count(node.op->name) != 0;
}

Channels ChannelsOf(const Graph& graph, const Node& node) {
  const std::string& op = node.op->name;
  Channels c;
  if (node.inputs.size() < 2) return c;
  const Tensor* weights = ConstantOf(graph, node.inputs[1]);
  if (weights == nullptr || weights->dtype() != DType::kFloat32) return c;
  const Shape& shape = weights->shape();
  if (op == "MatMul" || op == "BatchMatMul") {
    if (shape.rank() != 2) return c;
    const bool transposed = node.attrs.Bool("transpose_b") || node.attrs.Bool("adj_y");
    c = {weights, shape.dim(transposed ? 0 : 1), 2,
         1,       transposed ? shape.dim(1) : 1, op == "BatchMatMul"};
    return c;
  }
  const bool plain = op == "Conv2D" || op == "Conv3D";
  const bool volume = op == "Conv3D" || op == "Conv3DBackpropInputV2";
  const bool backward = op == "Conv2DBackpropInput" || op == "Conv3DBackpropInputV2";
  const bool depthwise = op == "DepthwiseConv2dNative";
  if (!plain && !backward && !depthwise) return c;
  const int rank = volume ? 5 : 4;
  if (shape.rank() != rank) return c;
  c.rank = rank;
  c.axis = rank - 1;
  c.count = shape.dim(backward ? rank - 2 : rank - 1);
  if (depthwise) c.count = shape.dim(2) * shape.dim(3);
  if (backward) c.inner = shape.dim(rank - 1);
  c.weights = weights;
  return c;
}

}  // namespace floe
