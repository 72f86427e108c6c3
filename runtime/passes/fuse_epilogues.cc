#include <set>

#include "model/op_def.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/rebuild.h"

namespace floe {
namespace {

const std::set<std::string>& FusableActivations() {
  static const std::set<std::string> names = {"Relu", "Relu6", "Sigmoid", "Tanh"};
  return names;
}

bool TakesEpilogue(const Node& node) {
  return node.op->name == "MatMul" || node.op->name == "Conv2D" ||
         node.op->name == "DepthwiseConv2dNative";
}

bool IsFloatConstant(const Node& node) {
  const Tensor* value = node.attrs.Find<Tensor>("value");
  return node.op->name == "Const" && value != nullptr && value->dtype() == DType::kFloat32;
}

// Channels of the op's output, from its constant filter or right-hand side; -1 when unknown.
int64_t OutputChannels(const Graph& graph, const Node& node) {
  const Node& weights = graph.node(node.inputs[1].node);
  if (!IsFloatConstant(weights)) return -1;
  const Shape& shape = weights.attrs.Find<Tensor>("value")->shape();
  if (node.op->name == "MatMul")
    return shape.rank() == 2 ? shape.dim(node.attrs.Bool("transpose_b") ? 0 : 1) : -1;
  if (shape.rank() != 4) return -1;
  return node.op->name == "Conv2D" ? shape.dim(3) : shape.dim(2) * shape.dim(3);
}

class Fuser {
 public:
  explicit Fuser(const Graph& graph) : graph_(graph), uses_(graph.size(), 0), rebuild_(graph) {
    for (const Node& node : graph.nodes()) {
      for (const ValueRef& in : node.inputs) ++uses_[in.node];
    }
    for (const ValueRef& out : graph.outputs)
      uses_[out.node] += 2;  // an output's value must exist by itself
  }

  Graph Run() {
    for (int i = 0; i < graph_.size(); ++i) {
      if (!FuseBias(i) && !FuseActivation(i)) rebuild_.Keep(i);
    }
    return rebuild_.Finish();
  }

 private:
  // The node that makes `ref`, if only `ref`'s user needs it and it can still take an epilogue.
  const Node* Producer(ValueRef ref) const {
    if (uses_[ref.node] != 1 || ref.output != 0 || !rebuild_.Mapped(ref)) return nullptr;
    const Node& node = rebuild_.out().node(rebuild_.Map(ref).node);
    return TakesEpilogue(node) && !node.attrs.Has("fused_activation") ? &node : nullptr;
  }

  bool FuseBias(int i) {
    const Node& node = graph_.node(i);
    const bool bias_add = node.op->name == "BiasAdd";
    if (!bias_add && node.op->name != "Add") return false;
    for (int side : {0, 1}) {
      if (bias_add && side == 1) break;
      const Node* producer = Producer(node.inputs[side]);
      if (producer == nullptr || producer->attrs.Has("fused_bias")) continue;
      const ValueRef bias_ref = node.inputs[1 - side];
      if (!IsFloatConstant(graph_.node(bias_ref.node)) ||
          !FitsBias(node, *producer, graph_.node(bias_ref.node)))
        continue;
      Node fused = *producer;
      fused.name = node.name;
      fused.attrs.Set("fused_bias", true);
      fused.inputs.push_back(rebuild_.Map(bias_ref));
      rebuild_.Emit(i, std::move(fused));
      return true;
    }
    return false;
  }

  // BiasAdd adds along the channels wherever they are; a plain Add only along the last dim.
  bool FitsBias(const Node& node, const Node& producer, const Node& bias) const {
    const Shape& shape = bias.attrs.Find<Tensor>("value")->shape();
    const int64_t channels = OutputChannels(rebuild_.out(), producer);
    const bool nchw = producer.attrs.String("data_format") == "NCHW";
    if (node.op->name == "BiasAdd") {
      return shape.rank() == 1 && shape.dim(0) == channels && producer.op->name != "MatMul"
                 ? (node.attrs.String("data_format") == "NCHW") == nchw
                 : shape.rank() == 1 && shape.dim(0) == channels &&
                       node.attrs.String("data_format") != "NCHW";
    }
    return !nchw && shape.rank() == 1 && shape.dim(0) == channels;
  }

  bool FuseActivation(int i) {
    const Node& node = graph_.node(i);
    if (FusableActivations().count(node.op->name) == 0) return false;
    const Node* producer = Producer(node.inputs[0]);
    if (producer == nullptr) return false;
    if (producer->attrs.Type("T", DType::kFloat32) != DType::kFloat32) return false;
    Node fused = *producer;
    fused.name = node.name;
    fused.attrs.Set("fused_activation", node.op->name);
    rebuild_.Emit(i, std::move(fused));
    return true;
  }

  const Graph& graph_;
  std::vector<int> uses_;
  Rebuild rebuild_;
};

}  // namespace

void FuseEpilogues(Graph* graph) { *graph = Fuser(*graph).Run(); }

}  // namespace floe
