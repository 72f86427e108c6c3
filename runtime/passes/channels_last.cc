#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/passes/graph_util.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/permutation.h"
#include "runtime/passes/rebuild.h"

namespace floe {
namespace {

// An op over images.
struct ImageOp {
  const char* name;
  int rank;
  size_t image = 0;    // the input whose layout data_format tells, as it does of output 0
  bool sized = false;  // input 0 holds the output's dims
};
constexpr ImageOp kImageOps[] = {
    {"Conv2D", 4},
    {"DepthwiseConv2dNative", 4},
    {"Conv2DBackpropInput", 4, 2, true},
    {"MaxPool", 4},
    {"AvgPool", 4},
    {"Conv3D", 5},
    {"Conv3DBackpropInputV2", 5, 2, true},
    {"MaxPool3D", 5},
    {"AvgPool3D", 5},
};

// The op of a node whose channels stand in front. Batch normalisation in training is how Keras 2
// writes layer normalisation: its channels are rows, and stay in front.
std::optional<ImageOp> ChannelsFirst(const Node& node) {
  const std::string format = node.attrs.String("data_format");
  if (format != "NCHW" && format != "NCDHW") return std::nullopt;
  const int rank = format == "NCHW" ? 4 : 5;
  const std::string& op = node.op->name;
  for (const ImageOp& known : kImageOps) {
    if (op == known.name && rank == known.rank) return known;
  }
  if (op.rfind("FusedBatchNorm", 0) == 0 && !node.attrs.Bool("is_training", true))
    return ImageOp{"FusedBatchNorm", rank};
  return std::nullopt;
}

Permutation ToLast(int rank) {
  Permutation to_last = {0};
  for (int axis = 2; axis < rank; ++axis) to_last.push_back(axis);
  to_last.push_back(1);
  return to_last;
}

// False when an attribute has not an entry for each dim, which inference refuses.
bool TurnAttributes(const Permutation& to_last, Attrs* attrs) {
  for (const char* name : {"strides", "dilations", "ksize", "explicit_paddings"}) {
    const std::vector<int64_t> first = attrs->Ints(name);
    if (first.empty()) continue;
    const size_t each = std::string(name) == "explicit_paddings" ? 2 : 1;
    if (first.size() != each * to_last.size()) return false;
    std::vector<int64_t> last;
    for (const int64_t axis : to_last)
      last.insert(last.end(), first.begin() + axis * each, first.begin() + (axis + 1) * each);
    attrs->Set(name, last);
  }
  attrs->Set("data_format", std::string(to_last.size() == 4 ? "NHWC" : "NDHWC"));
  return true;
}

class Turner {
 public:
  explicit Turner(const Graph& graph) : graph_(graph), rebuild_(graph) {}

  Graph Run() {
    for (int i = 0; i < graph_.size(); ++i) {
      const auto op = ChannelsFirst(graph_.node(i));
      if (!op.has_value() || !Turn(i, *op)) rebuild_.Keep(i);
    }
    return rebuild_.Finish();
  }

 private:
  bool Turn(int i, const ImageOp& op) {
    Node node = graph_.node(i);
    const Permutation to_last = ToLast(op.rank);
    if (node.inputs.size() <= op.image || !TurnAttributes(to_last, &node.attrs)) return false;
    const std::string name = node.name;
    for (ValueRef& in : node.inputs) in = rebuild_.Map(in);
    node.inputs[op.image] =
        Transposed(absl::StrCat(name, "/image"), node.inputs[op.image], to_last);
    if (op.sized) {
      const auto sizes = IntsOf(graph_, graph_.node(i).inputs[0]);
      // The spatial dims alone are in order.
      if (!sizes.has_value() || static_cast<int>(sizes->size()) == op.rank)
        node.inputs[0] = Gathered(absl::StrCat(name, "/sizes"), node, to_last);
    }
    const int made = rebuild_.Emit(i, std::move(node));
    rebuild_.Replace(i, 0,
                     Transposed(absl::StrCat(name, "/transposed"), {made, 0}, Inverse(to_last)));
    return true;
  }

  ValueRef Transposed(const std::string& name, ValueRef value, const Permutation& perm) {
    Node node;
    node.name = name;
    node.op = FindOp("Transpose");
    node.attrs.Set("Tperm", DType::kInt64);
    node.inputs = {value, Ints(absl::StrCat(name, "/perm"), perm)};
    return {rebuild_.Append(std::move(node)), 0};
  }

  // The dims in input 0 of `sized`, by their new places.
  ValueRef Gathered(const std::string& name, const Node& sized, const Permutation& order) {
    Node node;
    node.name = name;
    node.op = FindOp("Gather");
    node.attrs.Set("Tindices", DType::kInt64);
    node.inputs = {sized.inputs[0], Ints(absl::StrCat(name, "/order"), order)};
    return {rebuild_.Append(std::move(node)), 0};
  }

  ValueRef Ints(const std::string& name, const std::vector<int64_t>& values) {
    return {rebuild_.Append(ConstNode(name, Tensor::Vector(DType::kInt64, values))), 0};
  }

  const Graph& graph_;
  Rebuild rebuild_;
};

}  // namespace

void PutChannelsLast(Graph* graph) {
  for (const Node& node : graph->nodes()) {
    if (!ChannelsFirst(node).has_value()) continue;
    *graph = Turner(*graph).Run();
    return;
  }
}

}  // namespace floe
