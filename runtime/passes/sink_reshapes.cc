// A Dense layer over sequences multiplies rows of one matrix and gives them their shape back in
// front of the bias and the activation. Moved behind these, the Reshape no longer keeps them from
// becoming one with the product.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/op_def.h"
#include "runtime/analyze.h"
#include "runtime/passes/graph_util.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/rebuild.h"

namespace floe {
namespace {

class Sinker {
 public:
  Sinker(const Graph& graph, const Analysis& analysis)
      : graph_(graph), analysis_(analysis), uses_(graph), rebuild_(graph) {}

  Graph Run() {
    for (int i = 0; i < graph_.size(); ++i) {
      if (SinkActivation(i) || SinkBias(i)) continue;
      const int kept = rebuild_.Keep(i);
      const int64_t columns = ReshapedColumns(i);
      if (columns > 0) reshapes_[kept] = columns;
    }
    return rebuild_.Finish();
  }

 private:
  // The columns of the product that node i, its only reader, gives another shape; 0 when it is
  // anything else.
  int64_t ReshapedColumns(int i) const {
    const Node& node = graph_.node(i);
    if (node.op->name != "Reshape" || !node.control_inputs.empty()) return 0;
    const Node& product = graph_.node(node.inputs[0].node);
    const bool multiplies = product.op->name == "MatMul" || product.op->name == "BatchMatMul";
    return multiplies && uses_.OnlyUser(node.inputs[0].node) == i
               ? ChannelsOf(graph_, product).count
               : 0;
  }

  // The Reshape of the new graph that makes `ref`, when nobody but its one reader sees it.
  const Node* Movable(ValueRef ref) const {
    const int made = rebuild_.Map(ref).node;
    return reshapes_.count(made) != 0 && uses_.OnlyUser(ref.node) >= 0 ? &rebuild_.out().node(made)
                                                                       : nullptr;
  }

  // `node`, whose input `side` is the Reshape's, in front of it instead.
  void Emit(int i, Node reshape, Node node, int side) {
    const int64_t columns = reshapes_.at(rebuild_.Map(graph_.node(i).inputs[side]).node);
    node.inputs[side] = reshape.inputs[0];
    reshape.name = absl::StrCat(node.name, "/reshaped");
    reshape.inputs[0] = {rebuild_.Append(std::move(node)), 0};
    reshapes_[rebuild_.Emit(i, std::move(reshape))] = columns;
  }

  bool SinkActivation(int i) {
    static const std::set<std::string> names = {"Relu",      "Relu6", "Sigmoid",  "Tanh", "Elu",
                                                "LeakyRelu", "Gelu",  "GeluTanh", "Mish"};
    const Node& node = graph_.node(i);
    if (names.count(node.op->name) == 0 || !node.control_inputs.empty()) return false;
    const Node* reshape = Movable(node.inputs[0]);
    if (reshape == nullptr) return false;
    Emit(i, *reshape, node, 0);
    return true;
  }

  bool SinkBias(int i) {
    const Node& node = graph_.node(i);
    const bool bias_add = node.op->name == "BiasAdd";
    if ((!bias_add && node.op->name != "Add") || !node.control_inputs.empty()) return false;
    if (bias_add && node.attrs.String("data_format", "NHWC") == "NCHW") return false;
    for (const int side : {0, 1}) {
      if (bias_add && side == 1) break;
      const Node* reshape = Movable(node.inputs[side]);
      if (reshape == nullptr) continue;
      const std::optional<Tensor> bias =
          BiasOf(node.inputs[side], reshapes_.at(rebuild_.Map(node.inputs[side]).node),
                 node.inputs[1 - side]);
      if (!bias.has_value()) continue;
      const Node moved_over = *reshape;  // appending may move the nodes
      Node sum = node;
      sum.inputs[1 - side] = {rebuild_.Append(ConstNode(absl::StrCat(node.name, "/bias"), *bias)),
                              0};
      Emit(i, moved_over, std::move(sum), side);
      return true;
    }
    return false;
  }

  // The constant as a vector along the product's columns. It must cover the last dims behind the
  // Reshape, which together are the columns.
  std::optional<Tensor> BiasOf(ValueRef reshaped, int64_t columns, ValueRef given) const {
    const Tensor* constant = ConstantOf(graph_, given);
    const SymShape& to = analysis_.at(reshaped).type.shape;
    if (constant == nullptr || constant->dtype() != DType::kFloat32 || !to.rank_known() ||
        constant->shape().rank() > to.rank() || constant->elements() != columns || columns == 0)
      return std::nullopt;
    int64_t covered = 1;
    int axis = 1;
    for (; axis <= constant->shape().rank() && covered < columns; ++axis) {
      const Dim dim = to.dim(to.rank() - axis);
      if (!dim.concrete() || dim.size() != constant->shape().dim(constant->shape().rank() - axis))
        return std::nullopt;
      covered *= dim.size();
    }
    for (; axis <= constant->shape().rank(); ++axis) {
      if (constant->shape().dim(constant->shape().rank() - axis) != 1) return std::nullopt;
    }
    return covered == columns ? std::optional<Tensor>(constant->Reshaped(Shape({columns})))
                              : std::nullopt;
  }

  const Graph& graph_;
  const Analysis& analysis_;
  const Uses uses_;
  Rebuild rebuild_;
  std::map<int, int64_t> reshapes_;  // of the new graph, behind products of so many columns
};

}  // namespace

absl::Status SinkReshapes(Graph* graph, absl::Span<const TensorType> inputs,
                          const KernelOptions& options) {
  const auto multiplies = [&](const Node& node) {  // and is reshaped: a look before the analysis
    if (node.op->name != "Reshape") return false;
    const std::string& from = graph->node(node.inputs[0].node).op->name;
    return from == "MatMul" || from == "BatchMatMul";
  };
  if (std::none_of(graph->nodes().begin(), graph->nodes().end(), multiplies))
    return absl::OkStatus();
  FLOE_ASSIGN_OR_RETURN(const Analysis analysis, AnalyzeWithRows(*graph, inputs, options));
  *graph = Sinker(*graph, analysis).Run();
  Prune(graph);
  return absl::OkStatus();
}

}  // namespace floe
