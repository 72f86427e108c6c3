// Transposes move towards the outputs, past ops that do not care for the order of dims, until they
// meet others that undo them. A value is kept as a base and a permutation, and a Transpose is only
// made where somebody needs the value itself.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/op_def.h"
#include "model/ops/fused_elementwise.h"
#include "runtime/analyze.h"
#include "runtime/evaluate.h"
#include "runtime/passes/graph_util.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/permutation.h"
#include "runtime/passes/rebuild.h"

namespace floe {
namespace {

bool IsElementwise(const OpDef& op) {
  return op.name != "BiasAdd" &&
         (ops::MayBeFused(op) || op.name == "AddN" || op.name == "ClipByValue");
}

bool IsReduction(const std::string& op) {
  return op == "Mean" || op == "Sum" || op == "Max" || op == "Min" || op == "Prod";
}

// One class: a method for each kind of node that a transpose may pass, over one graph.
class Mover {
 public:
  Mover(const Graph& graph, const Analysis& analysis, const KernelOptions& options)
      : graph_(graph), analysis_(analysis), options_(options), rebuild_(graph) {}

  Graph Run() {
    for (int i = 0; i < graph_.size(); ++i) {
      if (Moves(i)) continue;
      for (const ValueRef& in : graph_.node(i).inputs) Plain(in);
      rebuild_.Keep(i);
    }
    for (const ValueRef& out : graph_.outputs) Plain(out);
    return rebuild_.Finish();
  }

 private:
  // An old value is Transpose(base, perm); `base` is of the new graph.
  struct Laid {
    ValueRef base;
    Permutation perm;
  };

  const SymShape& ShapeOf(ValueRef ref) const { return analysis_.at(ref).type.shape; }

  const Laid* LaidOf(ValueRef ref) const {
    const auto it = laid_.find(ref);
    return it == laid_.end() ? nullptr : &it->second;
  }

  // Output k of old node i. Nothing is made yet.
  void Lay(int i, int k, ValueRef base, Permutation perm) {
    if (IsIdentity(perm)) {
      rebuild_.Replace(i, k, base);
    } else {
      laid_[{i, k}] = {base, std::move(perm)};
    }
  }

  // The old value itself, in the new graph.
  ValueRef Plain(ValueRef ref) {
    const Laid* laid = LaidOf(ref);
    if (laid == nullptr || rebuild_.Mapped(ref)) return rebuild_.Map(ref);
    // The moved op has the node's own name.
    const ValueRef made = Transposed(NewName(ref.node, "transposed"), ref, laid->base, laid->perm);
    rebuild_.Replace(ref.node, ref.output, made);
    return made;
  }

  // Transpose(old value, perm).
  ValueRef As(ValueRef ref, const Permutation& perm) {
    const Laid* laid = LaidOf(ref);
    const Permutation all = laid == nullptr ? perm : Compose(laid->perm, perm);
    const ValueRef base = laid == nullptr ? rebuild_.Map(ref) : laid->base;
    if (IsIdentity(all)) return base;
    const std::string name =
        absl::StrCat(graph_.node(ref.node).name, "/turned", rebuild_.out().size());
    return Transposed(name, ref, base, all);
  }

  ValueRef Transposed(const std::string& name, ValueRef old, ValueRef base,
                      const Permutation& perm) {
    Node node;
    node.name = name;
    node.op = FindOp("Transpose");
    node.attrs.Set("T", analysis_.at(old).type.dtype);
    node.attrs.Set("Tperm", DType::kInt64);
    node.inputs = {base, Ints(absl::StrCat(name, "/perm", rebuild_.out().size()), perm)};
    return {rebuild_.Append(std::move(node)), 0};
  }

  ValueRef Ints(const std::string& name, const std::vector<int64_t>& values) {
    return Constant(name, Tensor::Vector(DType::kInt64, values));
  }
  ValueRef Constant(const std::string& name, const Tensor& value) {
    return {rebuild_.Append(ConstNode(name, value)), 0};
  }
  std::string NewName(int i, const char* what) const {
    return absl::StrCat(graph_.node(i).name, "/", what, rebuild_.out().size());
  }

  bool Moves(int i) {
    const Node& node = graph_.node(i);
    const std::string& op = node.op->name;
    if (!node.control_inputs.empty() || node.inputs.empty()) return false;
    if (op == "Transpose") return MoveTranspose(i);
    if (std::none_of(node.inputs.begin(), node.inputs.end(),
                     [&](ValueRef in) { return LaidOf(in) != nullptr; }))
      return false;
    if (op == "BiasAdd") return MoveBiasAdd(i);
    if (IsElementwise(*node.op)) return MoveElementwise(i);
    if (op == "ConcatV2") return MoveConcat(i);
    if (op == "Split" || op == "SplitV") return MoveSplit(i);
    if (op == "Pad" || op == "PadV2" || op == "MirrorPad") return MovePad(i);
    if (IsReduction(op)) return MoveReduction(i);
    return false;
  }

  bool MoveTranspose(int i) {
    const Node& node = graph_.node(i);
    const auto perm = PermutationOf(graph_, node);
    const SymShape& shape = ShapeOf(node.inputs[0]);
    // A permutation of another length is an error of the run.
    if (!perm.has_value() || !shape.rank_known() || shape.rank() != static_cast<int>(perm->size()))
      return false;
    if (const Laid* laid = LaidOf(node.inputs[0])) {
      Lay(i, 0, laid->base, Compose(laid->perm, *perm));
    } else {
      Lay(i, 0, rebuild_.Map(node.inputs[0]), *perm);
    }
    return true;
  }

  // The node in the place of old node i, whose output 0 is its own in another order.
  void EmitLaid(int i, Node node, const Permutation& perm) {
    const int outputs = node.num_outputs;
    const int made = rebuild_.Append(std::move(node));
    for (int k = 1; k < outputs; ++k) rebuild_.Replace(i, k, {made, k});
    Lay(i, 0, {made, 0}, perm);
  }

  bool MoveBiasAdd(int i) {
    Node node = graph_.node(i);
    const Laid* laid = LaidOf(node.inputs[0]);
    if (laid == nullptr) return false;
    const auto rank = static_cast<int64_t>(laid->perm.size());
    const bool first = node.attrs.String("data_format") == "NCHW";
    const int64_t axis = laid->perm[first ? 1 : rank - 1];
    if (axis != 1 && axis != rank - 1) return false;
    node.attrs.Set("data_format", std::string(axis == rank - 1 ? "NHWC" : "NCHW"));
    node.inputs = {laid->base, Plain(node.inputs[1])};
    EmitLaid(i, std::move(node), laid->perm);
    return true;
  }

  // The permutation that all inputs have which are not constants; null when there are several, or
  // a value of another rank.
  const Permutation* CommonOrder(const std::vector<ValueRef>& inputs) const {
    const Permutation* common = nullptr;
    for (const ValueRef& in : inputs) {
      const Laid* laid = LaidOf(in);
      if (laid == nullptr && ConstantOf(graph_, in) != nullptr) continue;
      if (laid == nullptr || (common != nullptr && *common != laid->perm)) return nullptr;
      common = &laid->perm;
    }
    return common;
  }

  // What stands for an input among bases of the order `perm`.
  absl::StatusOr<ValueRef> Base(int i, ValueRef in, const Permutation& perm) {
    if (const Laid* laid = LaidOf(in)) return laid->base;
    const Tensor& constant = *ConstantOf(graph_, in);
    if (constant.shape().rank() == 0) return rebuild_.Map(in);
    FLOE_ASSIGN_OR_RETURN(const Tensor turned, Turned(constant, perm));
    return Constant(NewName(i, "constant"), turned);
  }

  // A constant that broadcasts against Transpose(base, perm), as one that does against base.
  absl::StatusOr<Tensor> Turned(const Tensor& constant, const Permutation& perm) const {
    Shape shape;
    const int missing = static_cast<int>(perm.size()) - constant.shape().rank();
    for (int k = 0; k < missing; ++k) shape.push_back(1);
    for (const int64_t dim : constant.shape().dims()) shape.push_back(dim);
    const Permutation inverse = Inverse(perm);
    Shape turned;
    for (const int64_t axis : inverse) turned.push_back(shape.dim(static_cast<int>(axis)));
    Node node;
    node.name = "turned";
    node.op = FindOp("Transpose");
    node.attrs.Set("T", constant.dtype());
    node.attrs.Set("Tperm", DType::kInt64);
    const std::vector<Tensor> inputs = {constant.Reshaped(shape),
                                        Tensor::Vector(DType::kInt64, inverse)};
    const std::vector<TensorType> out = {{constant.dtype(), SymShape(turned)}};
    FLOE_ASSIGN_OR_RETURN(const std::vector<Tensor> made,
                          EvaluateNode(node, inputs, out, options_));
    return made[0];
  }

  // Replaces the first `count` inputs from `begin` on by bases of one order. Null: there is none.
  const Permutation* IntoOneOrder(int i, Node* node, size_t begin, size_t count) {
    const std::vector<ValueRef> inputs(node->inputs.begin() + begin,
                                       node->inputs.begin() + begin + count);
    const Permutation* perm = CommonOrder(inputs);
    if (perm == nullptr) return nullptr;
    for (const ValueRef& in : inputs) {
      if (ShapeOf(in).rank_known() && ShapeOf(in).rank() <= static_cast<int>(perm->size()))
        continue;
      return nullptr;
    }
    for (size_t k = 0; k < count; ++k) {
      const auto base = Base(i, inputs[k], *perm);
      if (!base.ok()) return nullptr;
      node->inputs[begin + k] = *base;
    }
    return perm;
  }

  bool MoveElementwise(int i) {
    Node node = graph_.node(i);
    const Permutation* perm = IntoOneOrder(i, &node, 0, node.inputs.size());
    if (perm == nullptr) return false;
    EmitLaid(i, std::move(node), *perm);
    return true;
  }

  // Where an axis that a constant names lies in the base; nothing when it is none of them.
  std::optional<std::vector<int64_t>> AxesIn(ValueRef ref, const Permutation& perm) const {
    std::optional<std::vector<int64_t>> axes = IntsOf(graph_, ref);
    const auto rank = static_cast<int64_t>(perm.size());
    if (!axes.has_value()) return std::nullopt;
    for (int64_t& axis : *axes) {
      if (axis < -rank || axis >= rank) return std::nullopt;
      axis = perm[axis < 0 ? axis + rank : axis];
    }
    return axes;
  }

  ValueRef Scalar(int i, int64_t value) {
    const std::vector<int32_t> values = {static_cast<int32_t>(value)};
    return Constant(NewName(i, "axis"), Tensor::Vector(DType::kInt32, values).Reshaped(Shape()));
  }

  bool MoveConcat(int i) {
    Node node = graph_.node(i);
    const ValueRef axis = node.inputs.back();
    node.inputs.pop_back();
    const Permutation* order = CommonOrder(node.inputs);
    for (const ValueRef& in : node.inputs) {
      if (LaidOf(in) == nullptr) order = nullptr;  // a constant does not broadcast here
    }
    if (order == nullptr) return false;
    const auto axes = AxesIn(axis, *order);
    if (!axes.has_value() || axes->size() != 1) return false;
    const Permutation* perm = IntoOneOrder(i, &node, 0, node.inputs.size());
    if (perm == nullptr) return false;
    node.attrs.Set("Tidx", DType::kInt32);
    node.inputs.push_back(Scalar(i, (*axes)[0]));
    EmitLaid(i, std::move(node), *perm);
    return true;
  }

  bool MoveSplit(int i) {
    Node node = graph_.node(i);
    const bool split = node.op->name == "Split";
    const size_t value = split ? 1 : 0, axis = split ? 0 : 2;
    if (node.inputs.size() != (split ? 2 : 3)) return false;
    const Laid* laid = LaidOf(node.inputs[value]);
    if (laid == nullptr) return false;
    const auto axes = AxesIn(node.inputs[axis], laid->perm);
    if (!axes.has_value() || axes->size() != 1) return false;
    if (!split) node.inputs[1] = Plain(node.inputs[1]);
    node.inputs[axis] = Scalar(i, (*axes)[0]);
    node.inputs[value] = laid->base;
    const Permutation perm = laid->perm;
    const int outputs = node.num_outputs;
    const int made = rebuild_.Append(std::move(node));
    for (int k = 0; k < outputs; ++k) Lay(i, k, {made, k}, perm);
    return true;
  }

  bool MovePad(int i) {
    Node node = graph_.node(i);
    const Laid* laid = LaidOf(node.inputs[0]);
    if (laid == nullptr) return false;
    const auto pads = IntsOf(graph_, node.inputs[1]);
    const size_t rank = laid->perm.size();
    if (!pads.has_value() || pads->size() != 2 * rank) return false;
    std::vector<int64_t> turned(pads->size());
    for (size_t k = 0; k < pads->size(); ++k) turned[2 * laid->perm[k / 2] + k % 2] = (*pads)[k];
    const Tensor value =
        Tensor::Vector(DType::kInt64, turned).Reshaped(Shape({static_cast<int64_t>(rank), 2}));
    node.inputs[0] = laid->base;
    node.inputs[1] = Constant(NewName(i, "pads"), value);
    if (node.inputs.size() > 2) node.inputs[2] = Plain(node.inputs[2]);
    node.attrs.Set("Tpaddings", DType::kInt64);
    EmitLaid(i, std::move(node), laid->perm);
    return true;
  }

  bool MoveReduction(int i) {
    Node node = graph_.node(i);
    const Laid* laid = LaidOf(node.inputs[0]);
    if (laid == nullptr) return false;
    const Permutation& perm = laid->perm;
    const auto axes = AxesIn(node.inputs[1], perm);
    if (!axes.has_value()) return false;
    Permutation left;  // dims of the result, in its order, as dims of the base
    for (const int64_t axis : perm) {
      if (std::find(axes->begin(), axes->end(), axis) == axes->end()) left.push_back(axis);
    }
    Permutation order;  // the same as dims of the reduced base
    for (const int64_t axis : left)
      order.push_back(
          std::count_if(left.begin(), left.end(), [&](int64_t other) { return other < axis; }));
    const Permutation result = node.attrs.Bool("keep_dims") ? perm : order;
    node.inputs = {laid->base, Ints(NewName(i, "axes"), *axes)};
    node.attrs.Set("Tidx", DType::kInt64);
    EmitLaid(i, std::move(node), result);
    return true;
  }

  const Graph& graph_;
  const Analysis& analysis_;
  const KernelOptions& options_;
  Rebuild rebuild_;
  std::map<ValueRef, Laid> laid_;
};

// What moving makes less: Transposes, then those that keep a product from its epilogue.
std::pair<int, int> Cost(const Graph& graph) {
  std::pair<int, int> cost;
  for (const Node& node : graph.nodes()) {
    if (node.op->name != "Transpose") continue;
    ++cost.first;
    if (TakesEpilogue(graph.node(node.inputs[0].node))) ++cost.second;
  }
  return cost;
}

}  // namespace

absl::Status MoveTransposes(Graph* graph, absl::Span<const TensorType> inputs,
                            const KernelOptions& options) {
  const std::pair<int, int> cost = Cost(*graph);
  if (cost.first == 0) return absl::OkStatus();
  FLOE_ASSIGN_OR_RETURN(const Analysis analysis, AnalyzeWithRows(*graph, inputs, options));
  Graph moved = Mover(*graph, analysis, options).Run();
  Prune(&moved);
  if (Cost(moved) < cost) *graph = std::move(moved);
  return absl::OkStatus();
}

}  // namespace floe
