// A Pad with zeros in front of a convolution that pads nothing itself: the convolution pads
// instead.
#include <optional>
#include <utility>
#include <vector>

#include "runtime/passes/graph_util.h"
#include "runtime/passes/passes.h"

namespace floe {
namespace {

constexpr int64_t kMostPad = 1 << 20;

// The pads of a Pad node, low and high of each dim; unset where they are not constant or not zeros.
std::optional<std::vector<int64_t>> ZeroPads(const Graph& graph, const Node& node) {
  if (node.op->name != "Pad" && node.op->name != "PadV2") return std::nullopt;
  if (node.op->name == "PadV2") {
    const Tensor* value = ConstantOf(graph, node.inputs[2]);
    if (value == nullptr || value->dtype() != DType::kFloat32 || value->elements() != 1 ||
        value->as<float>()[0] != 0)
      return std::nullopt;
  }
  const Tensor* pads = ConstantOf(graph, node.inputs[1]);
  if (pads == nullptr || pads->shape().rank() != 2 || pads->shape().dim(1) != 2)
    return std::nullopt;
  auto numbers = IntegerValues(pads->view());
  if (!numbers.ok()) return std::nullopt;
  for (const int64_t pad : *numbers) {
    if (pad < 0 || pad > kMostPad) return std::nullopt;
  }
  return *std::move(numbers);
}

// The axis of a 4-dim image that ExpandDims adds to a 3-dim one; -1 for other nodes.
int ExpandedAxis(const Graph& graph, const Node& node) {
  if (node.op->name != "ExpandDims") return -1;
  const Tensor* axis = ConstantOf(graph, node.inputs[1]);
  if (axis == nullptr || axis->elements() != 1) return -1;
  const auto numbers = IntegerValues(axis->view());
  if (!numbers.ok()) return -1;
  const int64_t from_front = (*numbers)[0] < 0 ? (*numbers)[0] + 4 : (*numbers)[0];
  return from_front >= 0 && from_front < 4 ? static_cast<int>(from_front) : -1;
}

// The pads as a convolution has them: for four dims, of which batch and channels have none.
std::optional<std::vector<int64_t>> ConvPads(const Node& conv, std::vector<int64_t> pads,
                                             int expanded) {
  if (expanded >= 0 && pads.size() == 6) pads.insert(pads.begin() + expanded * 2, 2, 0);
  if (pads.size() != 8) return std::nullopt;
  for (const int axis : {0, 3}) {  // batch and channels
    if (pads[2 * axis] != 0 || pads[2 * axis + 1] != 0) return std::nullopt;
  }
  const std::string padding = conv.attrs.String("padding", "VALID");
  if (padding == "VALID") return pads;
  const std::vector<int64_t> own = conv.attrs.Ints("explicit_paddings");
  if (padding != "EXPLICIT" || own.size() != pads.size()) return std::nullopt;
  for (size_t i = 0; i < pads.size(); ++i) {
    if (own[i] < 0 || own[i] > kMostPad) return std::nullopt;
    pads[i] += own[i];
  }
  return pads;
}

// Lets convolution `i` read what the Pad in front of it reads.
void FoldInto(Graph* graph, const Uses& uses, int i) {
  const Node& conv = graph->node(i);
  const ValueRef image = conv.inputs[0];
  const int expanded = ExpandedAxis(*graph, graph->node(image.node));
  const bool through = expanded >= 0 && uses.OnlyUser(image.node) == i;
  const ValueRef padded = through ? graph->node(image.node).inputs[0] : image;
  const Node& pad = graph->node(padded.node);
  auto pads = ZeroPads(*graph, pad);
  if (!pads.has_value() || !pad.control_inputs.empty()) return;
  pads = ConvPads(conv, *std::move(pads), through ? expanded : -1);
  if (!pads.has_value()) return;
  const ValueRef source = pad.inputs[0];
  graph->mutable_node(through ? image.node : i).inputs[0] = source;
  Attrs& attrs = graph->mutable_node(i).attrs;
  attrs.Set("padding", std::string("EXPLICIT"));
  attrs.Set("explicit_paddings", *std::move(pads));
}

}  // namespace

void FoldPads(Graph* graph) {
  const Uses uses(*graph);
  for (int i = 0; i < graph->size(); ++i) {
    const std::string& op = graph->node(i).op->name;
    if (op == "Conv2D" || op == "DepthwiseConv2dNative") FoldInto(graph, uses, i);
  }
}

}  // namespace floe
