// A pointwise convolution, the depthwise one behind it and the pointwise one behind that become one
// step, which keeps what lies between them in the cache: the blocks of MobileNetV2, EfficientNet
// and their like. Without the first there is less between them, and one step gained nothing.
#include <algorithm>
#include <map>
#include <optional>

#include "base/status.h"
#include "model/op_def.h"
#include "model/ops/conv_chain.h"
#include "model/ops/conv_nd.h"
#include "runtime/analyze.h"
#include "runtime/passes/graph_util.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/rebuild.h"

namespace floe {
namespace {

struct ChainMatch {
  int expand = -1, depthwise = -1, project = -1;  // nodes; `project` may be missing
  int last() const { return project >= 0 ? project : depthwise; }
};

// With the inputs of `graph`.
Node ChainOf(const Graph& graph, const ChainMatch& match) {
  Node chain;
  chain.name = graph.node(match.last()).name;
  chain.op = FindOp("ConvChain");
  const std::pair<const char*, int> stages[] = {
      {"expand", match.expand}, {"depthwise", match.depthwise}, {"project", match.project}};
  for (const auto& [name, i] : stages) {
    if (i < 0) continue;
    const Node& stage = graph.node(i);
    ops::AppendConvStage(name, stage, &chain);
    for (size_t k = chain.inputs.empty() ? 0 : 1; k < stage.inputs.size(); ++k)
      chain.inputs.push_back(stage.inputs[k]);
  }
  return chain;
}

class ChainFinder {
 public:
  ChainFinder(const Graph& graph, const Analysis& analysis, const KernelOptions& options)
      : graph_(graph),
        analysis_(analysis),
        options_(options),
        uses_(graph),
        taken_(graph.size(), false) {}

  // By the last node.
  std::map<int, ChainMatch> Find() {
    std::map<int, ChainMatch> matches;
    for (int i = 0; i < graph_.size(); ++i) {
      if (!IsDepthwise(i)) continue;
      ChainMatch match;
      match.depthwise = i;
      const int before = graph_.node(i).inputs[0].node, behind = uses_.OnlyUser(i);
      if (uses_.OnlyUser(before) != i || taken_[before] || !IsPointwise(before) ||
          EpilogueOf(graph_.node(before).attrs).has_residual())
        continue;
      match.expand = before;
      if (behind >= 0 && graph_.node(behind).inputs[0].node == i && IsPointwise(behind))
        match.project = behind;
      if (!TargetComputes(match)) continue;
      if (match.project >= 0) taken_[behind] = true;
      matches[match.last()] = match;
    }
    return matches;
  }

 private:
  bool TargetComputes(const ChainMatch& match) const {
    const Node chain = ChainOf(graph_, match);
    std::vector<ValueInfo> inputs;
    for (const ValueRef& in : chain.inputs) inputs.push_back({analysis_.at(in).type, {}, {}});
    return CanCompute({chain, inputs, options_});
  }

  // The filter, when the node is a convolution of float32 NHWC images whose weights are constants,
  // for which no route is asked.
  const Tensor* FilterOf(int i, const char* op) const {
    const Node& node = graph_.node(i);
    if (node.op->name != op || !node.control_inputs.empty() ||
        node.attrs.String("data_format", "NHWC") != "NHWC" ||
        analysis_.values[i][0].type.dtype != DType::kFloat32 || options_.routes.contains(node.name))
      return nullptr;
    const Epilogue epilogue = EpilogueOf(node.attrs);
    if (epilogue.has_bias() && ConstantOf(graph_, node.inputs[epilogue.bias]) == nullptr)
      return nullptr;
    const Tensor* filter = ConstantOf(graph_, node.inputs[1]);
    return filter != nullptr && filter->elements() > 0 ? filter : nullptr;
  }

  bool IsDepthwise(int i) const {
    const Tensor* filter = FilterOf(i, "DepthwiseConv2dNative");
    return filter != nullptr && filter->shape().dim(3) == 1;
  }

  // One tap, every pixel, one group.
  bool IsPointwise(int i) const {
    const Tensor* filter = FilterOf(i, "Conv2D");
    if (filter == nullptr || filter->shape().dim(0) != 1 || filter->shape().dim(1) != 1)
      return false;
    const SymShape& image = analysis_.at(graph_.node(i).inputs[0]).type.shape;
    if (!image.rank_known() || image.dim(3) != Dim(filter->shape().dim(2))) return false;
    const auto window = ops::ConvNdOf(graph_.node(i).attrs, 2);
    if (!window.ok()) return false;
    for (int k = 0; k < 2; ++k) {
      const ops::WindowPads& pads = window->pads[k];
      if (window->stride[k] != 1 || pads.low != 0 || pads.high != 0) return false;
    }
    return true;
  }

  const Graph& graph_;
  const Analysis& analysis_;
  const KernelOptions& options_;
  const Uses uses_;
  std::vector<bool> taken_;  // the last of an earlier chain
};

}  // namespace

absl::Status FuseConvChains(Graph* graph, absl::Span<const TensorType> inputs,
                            const KernelOptions& options) {
  const auto depthwise = [](const Node& node) { return node.op->name == "DepthwiseConv2dNative"; };
  if (std::none_of(graph->nodes().begin(), graph->nodes().end(), depthwise))
    return absl::OkStatus();
  FLOE_ASSIGN_OR_RETURN(const Analysis analysis, AnalyzeWithRows(*graph, inputs, options));
  const std::map<int, ChainMatch> matches = ChainFinder(*graph, analysis, options).Find();
  if (matches.empty()) return absl::OkStatus();
  *graph = ReplaceMatches(*graph, matches, [&](int, const ChainMatch& match, Rebuild* rebuild) {
    Node chain = ChainOf(*graph, match);
    for (ValueRef& in : chain.inputs) in = rebuild->Map(in);
    return chain;
  });
  return absl::OkStatus();
}

}  // namespace floe
