// Follows an input to the ops that read it, and derives rank and dimensions from them.
#include "runtime/shape_hints.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "model/op_def.h"

namespace floe {
namespace {

constexpr int kMaxDepth = 32;  // ops between an input and the one that tells its shape

class Hints {
 public:
  explicit Hints(const Graph& graph) : graph_(graph) {
    users_.resize(graph.size());
    for (int i = 0; i < graph.size(); ++i) {
      for (const ValueRef& in : graph.node(i).inputs) users_[in.node].push_back(i);
    }
  }

  // Each value is looked at once: a chain of n times `x + f(x)` has 2^n ways through it.
  SymShape Of(ValueRef value, int depth) {
    const auto [known, is_new] = known_.emplace(value, SymShape::UnknownRank());
    if (is_new) {
      SymShape shape = Look(value, depth);
      known->second = std::move(shape);
    }
    return known->second;
  }

 private:
  SymShape Look(ValueRef value, int depth) {
    for (const int user : users_[value.node]) {
      const Node& node = graph_.node(user);
      for (size_t k = 0; k < node.inputs.size(); ++k) {
        if (node.inputs[k] != value) continue;
        SymShape shape = Asked(user, k, depth);
        if (shape.rank_known()) return shape;
      }
    }
    return SymShape::UnknownRank();
  }

  // What is known of a constant; an unknown rank for anything else.
  SymShape Weights(const Node& node, size_t input) const {
    if (input >= node.inputs.size()) return SymShape::UnknownRank();
    const Node& from = graph_.node(node.inputs[input].node);
    if (from.op->name != "Const") return SymShape::UnknownRank();
    const Tensor* value = from.attrs.Find<Tensor>("value");
    if (value != nullptr) return SymShape(value->shape());
    return from.attrs.Get<SymShape>("shape", SymShape::UnknownRank());
  }

  std::vector<int64_t> Integers(const Node& node, size_t input) const {
    if (input >= node.inputs.size()) return {};
    const Node& from = graph_.node(node.inputs[input].node);
    const Tensor* value = from.attrs.Find<Tensor>("value");
    if (from.op->name != "Const" || value == nullptr) return {};
    const auto values = IntegerValues(value->view());
    return values.ok() ? *values : std::vector<int64_t>();
  }

  static SymShape Open(int rank) {
    SymShape shape;
    for (int axis = 0; axis < rank; ++axis) shape.push_back(Dim::Unknown());
    return shape;
  }

  static SymShape Image(const Node& node, int rank, Dim channels) {
    SymShape shape = Open(rank);
    const bool first = absl::StartsWith(node.attrs.String("data_format"), "NC");
    shape.set_dim(first ? 1 : rank - 1, channels);
    return shape;
  }

  // What node `user` asks of its input k, or those behind it of its output.
  SymShape Asked(int user, size_t k, int depth) {
    const Node& node = graph_.node(user);
    const std::string& op = node.op->name;
    const SymShape weights = Weights(node, 1);
    if (k == 0 && op == "MatMul") {
      SymShape shape = Open(2);
      const bool across = node.attrs.Bool("transpose_a");
      if (weights.rank_known() && weights.rank() == 2)
        shape.set_dim(across ? 0 : 1, weights.dim(node.attrs.Bool("transpose_b") ? 1 : 0));
      return shape;
    }
    if (k == 0 && op == "BatchMatMul" && weights.rank_known() && weights.rank() >= 2) {
      SymShape shape = Open(weights.rank());
      const bool turned = node.attrs.Bool("adj_y"), across = node.attrs.Bool("adj_x");
      shape.set_dim(weights.rank() - (across ? 2 : 1),
                    weights.dim(weights.rank() - (turned ? 1 : 2)));
      return shape;
    }
    if (k == 0 && op == "DecodeWav") return SymShape();
    if (op == "ArgMax" || op == "SoftmaxCrossEntropyWithLogits") return Open(2);
    if (k == 0 && (op == "Conv2D" || op == "DepthwiseConv2dNative" || op == "Conv3D")) {
      const int rank = op == "Conv3D" ? 5 : 4;
      const bool known = weights.rank_known() && weights.rank() == rank;
      return Image(node, rank, known ? weights.dim(rank - 2) : Dim::Unknown());
    }
    if (k == 0 && absl::StartsWith(op, "FusedBatchNorm")) {
      const bool known = weights.rank_known() && weights.rank() == 1;
      return Image(node, 4, known ? weights.dim(0) : Dim::Unknown());
    }
    if (k == 0 && op == "Reshape") return Reshaped(Integers(node, 1));
    if (SameShape(node) && BesideRandom(node, k)) return SymShape();
    if (depth >= kMaxDepth) return SymShape::UnknownRank();
    return Behind(user, k, depth);
  }

  // An input of as many elements, with the rows where the new shape has them.
  static SymShape Reshaped(const std::vector<int64_t>& dims) {
    if (dims.empty()) return SymShape::UnknownRank();
    SymShape shape;
    for (const int64_t dim : dims) shape.push_back(dim < 0 ? Dim::Unknown() : Dim(dim));
    return shape;
  }

  SymShape Behind(int user, size_t k, int depth) {
    const Node& node = graph_.node(user);
    const std::string& op = node.op->name;
    SymShape out = Of({user, 0}, depth + 1);
    if (k == 0 && absl::StartsWith(op, "Resize"))
      return Image(node, 4, out.rank_known() && out.rank() == 4 ? out.dim(3) : Dim::Unknown());
    if (k == 0 && (absl::EndsWith(op, "Pool") || op == "LRN")) {
      if (!out.rank_known() || out.rank() != 4) return Open(4);
      const bool first = absl::StartsWith(node.attrs.String("data_format"), "NC");
      return Image(node, 4, out.dim(first ? 1 : 3));
    }
    if (k == 0 && (op == "Pad" || op == "PadV2" || op == "MirrorPad")) {
      const SymShape paddings = Weights(node, 1);
      const bool known =
          paddings.rank_known() && paddings.rank() == 2 && paddings.dim(0).concrete();
      return known ? Padded(static_cast<int>(paddings.dim(0).size()), out, Integers(node, 1)) : out;
    }
    if (k == 0 && op == "Transpose") return Untransposed(Integers(node, 1), out);
    if (k == 1 && (op == "Gather" || op == "GatherV2")) return Indices(Weights(node, 0), out);
    if (k == 0 && op == "ExpandDims") return Without(Integers(node, 1), out);
    return SameShape(node) ? out : SymShape::UnknownRank();
  }

  // Rows of a table are looked up: what is asked of them, less the dims of a row.
  static SymShape Indices(const SymShape& table, const SymShape& out) {
    const int row = table.rank_known() ? table.rank() - 1 : 1;
    if (!out.rank_known() || out.rank() < row) return SymShape::UnknownRank();
    SymShape shape;
    for (int axis = 0; axis < out.rank() - row; ++axis) shape.push_back(out.dim(axis));
    return shape;
  }

  // The share of dropout that stays stands beside the random numbers that are held against it.
  bool BesideRandom(const Node& node, size_t k, int depth = 0) const {
    constexpr int kMaxSteps = 4;
    for (size_t i = 0; i < node.inputs.size() && depth < kMaxSteps; ++i) {
      const Node& from = graph_.node(node.inputs[i].node);
      if (depth == 0 && i == k) continue;
      if (absl::StartsWith(from.op->name, "Random")) return true;
      if (SameShape(from) && BesideRandom(from, 0, depth + 1)) return true;
    }
    return false;
  }

  // Dims that are padded stay open.
  static SymShape Padded(int rank, const SymShape& out, const std::vector<int64_t>& paddings) {
    SymShape shape = Open(rank);
    for (int axis = 0; axis < rank; ++axis) {
      const size_t at = 2 * static_cast<size_t>(axis);
      if (out.rank_known() && out.rank() == rank && at + 1 < paddings.size() && paddings[at] == 0 &&
          paddings[at + 1] == 0)
        shape.set_dim(axis, out.dim(axis));
    }
    return shape;
  }

  static SymShape Untransposed(const std::vector<int64_t>& permutation, const SymShape& out) {
    const int rank = static_cast<int>(permutation.size());
    SymShape shape = Open(rank);
    if (rank == 0) return SymShape::UnknownRank();
    for (int axis = 0; axis < rank; ++axis) {
      const int64_t from = permutation[axis];
      if (out.rank_known() && out.rank() == rank && from >= 0 && from < rank)
        shape.set_dim(static_cast<int>(from), out.dim(axis));
    }
    return shape;
  }

  static SymShape Without(const std::vector<int64_t>& axis, const SymShape& out) {
    if (axis.size() != 1 || !out.rank_known() || out.rank() == 0) return SymShape::UnknownRank();
    const auto removed = NormalizeAxis(axis[0], out.rank());
    if (!removed.ok()) return SymShape::UnknownRank();
    SymShape shape;
    for (int k = 0; k < out.rank(); ++k) {
      if (k != *removed) shape.push_back(out.dim(k));
    }
    return shape;
  }

  // Element by element, with operands that do not widen it.
  bool SameShape(const Node& node) const {
    static const std::set<std::string> kOps = {"Abs",       "Add",
                                               "AddV2",     "BiasAdd",
                                               "Cast",      "ClipByValue",
                                               "Div",       "Equal",
                                               "Greater",   "GreaterEqual",
                                               "Identity",  "Less",
                                               "LessEqual", "FusedElementwise",
                                               "Maximum",   "Minimum",
                                               "Mul",       "Neg",
                                               "RealDiv",   "Relu",
                                               "Relu6",     "Sigmoid",
                                               "Softmax",   "Sqrt",
                                               "Square",    "Sub",
                                               "Tanh"};
    return kOps.count(node.op->name) != 0;
  }

  const Graph& graph_;
  std::vector<std::vector<int>> users_;
  std::map<ValueRef, SymShape> known_;
};

}  // namespace

SymShape HintedShape(const Signature& signature, int input) {
  const CompiledSignature& variant = signature.default_variant();
  const std::string& tensor = signature.def().inputs[input].tensor_name;
  for (size_t k = 0; k < variant.graph().inputs.size(); ++k) {
    const int node = variant.graph().inputs[k];
    if (variant.graph().node(node).name == tensor) return Hints(variant.graph()).Of({node, 0}, 0);
  }
  return SymShape::UnknownRank();
}

}  // namespace floe
