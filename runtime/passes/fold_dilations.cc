// SpaceToBatchND takes an image apart into the sub-images of every r-th pixel, a convolution runs
// over those, and BatchToSpaceND puts the results together: a convolution dilated by r. Whatever
// treats every pixel alike may stand between. With blocks of 1 the two outer nodes pad and crop;
// where the numbers are known the convolution pads instead.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/op_def.h"
#include "runtime/passes/graph_util.h"
#include "runtime/passes/passes.h"

namespace floe {
namespace {

bool IsConv(const Node& node) {
  return node.op->name == "Conv2D" || node.op->name == "DepthwiseConv2dNative";
}

std::optional<std::vector<int64_t>> IntsAt(const Graph& graph, ValueRef ref) {
  const Tensor* value = ConstantOf(graph, ref);
  if (value == nullptr) return std::nullopt;
  auto values = IntegerValues(value->view());
  if (!values.ok()) return std::nullopt;
  return *std::move(values);
}

// The axis of a 4-dim image that a node adds to a 3-dim one, or takes away again; -1 otherwise.
int AxisOfOne(const Graph& graph, const Node& node) {
  std::vector<int64_t> axes;
  if (node.op->name == "ExpandDims") {
    axes = IntsAt(graph, node.inputs[1]).value_or(std::vector<int64_t>());
  } else if (node.op->name == "Squeeze") {
    axes = node.attrs.Ints("squeeze_dims");
    if (axes.empty()) axes = node.attrs.Ints("axis");
  }
  if (axes.size() != 1) return -1;
  const int64_t axis = axes[0] < 0 ? axes[0] + 4 : axes[0];
  return axis == 1 || axis == 2 ? static_cast<int>(axis) : -1;
}

// Nodes from behind SpaceToBatchND to in front of BatchToSpaceND, each the only reader of the one
// before.
struct Chain {
  int to_batch = -1, to_space = -1;
  std::vector<int> between;
  std::vector<int64_t> blocks;
  int expanded = -1;  // the axis of 1 that is there between ExpandDims and Squeeze
};

class DilationFolder {
 public:
  explicit DilationFolder(Graph* graph) : graph_(*graph), uses_(*graph) {}

  bool Run() {
    bool any = false;
    for (int i = 0, end = graph_.size(); i < end; ++i) {
      if (graph_.node(i).op->name != "BatchToSpaceND") continue;
      const std::optional<Chain> chain = Find(i);
      if (chain.has_value() && Dilate(*chain)) any = true;
    }
    return any;
  }

 private:
  std::optional<Chain> Find(int to_space) const {
    const Node& end = graph_.node(to_space);
    Chain chain;
    chain.to_space = to_space;
    const auto blocks = IntsAt(graph_, end.inputs[1]);
    if (!blocks.has_value() || blocks->empty()) return std::nullopt;
    chain.blocks = *blocks;
    bool squeezed = false, convolved = false;
    ValueRef at = end.inputs[0];
    for (int reader = to_space;; reader = at.node, at = graph_.node(at.node).inputs[0]) {
      const Node& node = graph_.node(at.node);
      if (at.output != 0 || uses_.OnlyUser(at.node) != reader) return std::nullopt;
      if (node.op->name == "SpaceToBatchND") {
        chain.to_batch = at.node;
        std::reverse(chain.between.begin(), chain.between.end());
        if (!convolved || squeezed || IntsAt(graph_, node.inputs[1]) != blocks) return std::nullopt;
        return chain;
      }
      const int axis = AxisOfOne(graph_, node);
      if (axis >= 0 && node.op->name == "Squeeze" && !squeezed &&
          (chain.expanded < 0 || axis == chain.expanded)) {
        chain.expanded = axis;
        squeezed = true;
      } else if (axis >= 0 && node.op->name == "ExpandDims" && squeezed) {
        if (axis != chain.expanded) return std::nullopt;
        squeezed = false;
      } else if (IsConv(node)) {
        if (chain.expanded >= 0 && !squeezed) return std::nullopt;
        convolved = true;
      } else if (!PixelByPixel(node)) {
        return std::nullopt;
      }
      chain.between.push_back(at.node);
    }
  }

  // Gives for each pixel what that pixel alone says, in the same place, wherever the channels are
  // last.
  bool PixelByPixel(const Node& node) const {
    if (node.inputs.empty()) return false;
    const bool bias =
        node.op->name == "BiasAdd" && node.attrs.String("data_format", "NHWC") == "NHWC";
    if (!bias && node.op->rows != RowsElementwise) return false;
    for (size_t k = 1; k < node.inputs.size(); ++k) {
      const Tensor* constant = ConstantOf(graph_, node.inputs[k]);
      if (constant == nullptr || constant->shape().rank() > 1) return false;
    }
    return node.num_outputs == 1;
  }

  // Where axis `i` of the blocks is in the image that the convolutions see.
  static int ImageAxis(const Chain& chain, size_t i) {
    const int axis = static_cast<int>(i) + 1;
    return chain.expanded >= 0 && axis >= chain.expanded ? axis + 1 : axis;
  }

  // Dilations of the convolution between sub-images, over the whole image; nothing when it is not
  // one of those.
  std::optional<std::vector<int64_t>> Dilations(const Chain& chain, const Node& conv) const {
    if (conv.attrs.String("data_format", "NHWC") != "NHWC" ||
        conv.attrs.String("padding", "VALID") != "VALID" || EpilogueOf(conv.attrs).has_bias())
      return std::nullopt;
    const std::vector<int64_t> strides = conv.attrs.Ints("strides");
    if (std::any_of(strides.begin(), strides.end(), [](int64_t s) { return s != 1; }))
      return std::nullopt;
    std::vector<int64_t> dilations = conv.attrs.Ints("dilations");
    if (dilations.empty()) dilations = {1, 1, 1, 1};
    if (dilations.size() != 4) return std::nullopt;
    for (size_t i = 0; i < chain.blocks.size(); ++i) {
      const int axis = ImageAxis(chain, i);
      constexpr int64_t kMost = 1 << 20;
      const bool spatial = axis == 1 || axis == 2;
      if (axis > 3) return std::nullopt;
      if (chain.blocks[i] < 1 || chain.blocks[i] > kMost || (!spatial && chain.blocks[i] != 1))
        return std::nullopt;
      if (spatial && (dilations[axis] < 1 || dilations[axis] > kMost)) return std::nullopt;
      if (spatial) dilations[axis] *= chain.blocks[i];
    }
    return dilations;
  }

  bool Dilate(const Chain& chain) {
    std::vector<std::pair<int, std::vector<int64_t>>> convs;
    for (int i : chain.between) {
      if (!IsConv(graph_.node(i))) continue;
      const auto dilations = Dilations(chain, graph_.node(i));
      if (!dilations.has_value()) return false;
      convs.emplace_back(i, *dilations);
    }
    for (const auto& [conv, dilations] : convs)
      graph_.mutable_node(conv).attrs.Set("dilations", dilations);
    if (!PadInConvolution(chain, convs.front().first)) {
      const Tensor ones =
          Tensor::Vector(DType::kInt64, std::vector<int64_t>(chain.blocks.size(), 1));
      for (int outer : {chain.to_batch, chain.to_space}) {
        Node constant = ConstNode(absl::StrCat(graph_.node(outer).name, "/block_of_1"), ones);
        const int block = graph_.Add(std::move(constant));
        graph_.mutable_node(outer).inputs[1] = {block, 0};
      }
    }
    return true;
  }

  // Takes pads and crops into the convolution where they are numbers and it comes first. A crop
  // takes away what a pad added: other crops stay.
  bool PadInConvolution(const Chain& chain, int conv) {
    for (int i : chain.between) {
      if (i == conv) break;
      if (graph_.node(i).op->name != "ExpandDims") return false;
    }
    const auto pads = IntsAt(graph_, graph_.node(chain.to_batch).inputs[2]),
               crops = IntsAt(graph_, graph_.node(chain.to_space).inputs[2]);
    const size_t wanted = 2 * chain.blocks.size();
    if (!pads.has_value() || !crops.has_value() || pads->size() != wanted ||
        crops->size() != wanted)
      return false;
    std::vector<int64_t> explicit_pads(8, 0);
    for (size_t k = 0; k < wanted; ++k) {
      const int axis = ImageAxis(chain, k / 2);
      const int64_t pad = (*pads)[k] - (*crops)[k];
      if ((*pads)[k] < 0 || (*crops)[k] < 0 || pad < 0) return false;
      if (axis != 1 && axis != 2 && pad != 0) return false;
      explicit_pads[2 * static_cast<size_t>(axis) + k % 2] = pad;
    }
    Attrs& attrs = graph_.mutable_node(conv).attrs;
    attrs.Set("padding", std::string("EXPLICIT"));
    attrs.Set("explicit_paddings", explicit_pads);
    for (int outer : {chain.to_batch, chain.to_space}) {
      Node& node = graph_.mutable_node(outer);
      node.op = FindOp("Identity");
      node.inputs.resize(1);
      node.attrs = {};
    }
    return true;
  }

  Graph& graph_;
  const Uses uses_;
};

}  // namespace

absl::Status FoldDilations(Graph* graph) {
  if (!DilationFolder(graph).Run()) return absl::OkStatus();
  if (!SortTopologically(graph)) return absl::InternalError("a folded dilation made a cycle");
  RemoveIdentities(graph);
  return absl::OkStatus();
}

}  // namespace floe
