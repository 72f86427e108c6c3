#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/op_def.h"
#include "runtime/analyze.h"
#include "runtime/passes/graph_util.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/permutation.h"
#include "runtime/passes/rebuild.h"

namespace floe {
namespace {

class Simplifier {
 public:
  Simplifier(const Graph& graph, const Analysis& analysis, const KernelOptions& options)
      : graph_(graph), analysis_(analysis), options_(options), rebuild_(graph) {}

  Graph Run() {
    for (int i = 0; i < graph_.size(); ++i) {
      const Node& node = graph_.node(i);
      if (!node.control_inputs.empty() || node.inputs.empty()) {
        rebuild_.Keep(i);
      } else if (const std::optional<int> same = SameAsInput(node)) {
        rebuild_.Replace(i, 0, rebuild_.Map(node.inputs[*same]));
      } else if (!SimplifyTranspose(i) && !SimplifyPower(i) && !MakeDepthwise(i)) {
        rebuild_.Keep(i);
      }
    }
    return rebuild_.Finish();
  }

 private:
  const TensorType& TypeOf(ValueRef ref) const { return analysis_.at(ref).type; }

  // The input that a node gives back bit by bit, under the same shape, whatever its values. x * 1
  // and x + 0 of floats are not among them: they flush denormal numbers, and -0 + 0 is 0.
  std::optional<int> SameAsInput(const Node& node) const {
    const std::string& op = node.op->name;
    if (op == "Cast" && node.attrs.Type("DstT") == TypeOf(node.inputs[0]).dtype) return 0;
    if (op == "Pad" || op == "PadV2" || op == "MirrorPad") return WithoutPadding(node);
    if (op == "Reshape" || op == "BroadcastTo") {
      const SymShape &from = TypeOf(node.inputs[0]).shape, &to = OutputOf(node).shape;
      if (from.concrete() && from == to) return 0;
    }
    if (op == "AddN" && node.inputs.size() == 1) return 0;
    if (op == "Add" || op == "Sub" || op == "Mul") return NeutralInteger(node);
    if (op == "Minimum" || op == "Maximum") return Absorbing(node);
    if (op == "Transpose") {
      const auto perm = PermutationOf(graph_, node);
      const SymShape& shape = TypeOf(node.inputs[0]).shape;
      // The rank must be known: a permutation of another length is an error.
      if (perm.has_value() && shape.rank_known() &&
          shape.rank() == static_cast<int>(perm->size()) && IsIdentity(*perm))
        return 0;
    }
    return std::nullopt;
  }

  const TensorType& OutputOf(const Node& node) const {
    return analysis_.values[&node - graph_.nodes().data()][0].type;
  }

  std::optional<int> WithoutPadding(const Node& node) const {
    const auto pads = IntsOf(graph_, node.inputs[1]);
    const SymShape& shape = TypeOf(node.inputs[0]).shape;
    if (!pads.has_value() || !shape.rank_known() ||
        pads->size() != 2 * static_cast<size_t>(shape.rank()))
      return std::nullopt;
    const bool none = std::all_of(pads->begin(), pads->end(), [](int64_t p) { return p == 0; });
    return none ? std::optional<int>(0) : std::nullopt;
  }

  // min(x, max(x, y)) and max(x, min(x, y)) of integers are x: so a bincount of a given length is
  // written.
  std::optional<int> Absorbing(const Node& node) const {
    const char* const opposite = node.op->name == "Minimum" ? "Maximum" : "Minimum";
    for (const int side : {0, 1}) {
      const ValueRef x = node.inputs[side], bound = node.inputs[1 - side];
      const Node& inner = graph_.node(bound.node);
      const TensorType& type = TypeOf(x);
      if (inner.op->name != opposite || !IsIndex(type.dtype) || !type.shape.concrete() ||
          TypeOf(bound).shape != type.shape)
        continue;
      if (IsSame(x, inner.inputs[0]) || IsSame(x, inner.inputs[1])) return side;
    }
    return std::nullopt;
  }

  static bool IsIndex(DType dtype) { return dtype == DType::kInt32 || dtype == DType::kInt64; }

  bool IsSame(ValueRef a, ValueRef b) const {
    if (a == b) return true;
    const auto left = IntsOf(graph_, a), right = IntsOf(graph_, b);
    return left.has_value() && left == right && TypeOf(a).shape == TypeOf(b).shape;
  }

  // x + 0, 0 + x, x - 0, x * 1 and 1 * x of integers, where the constant makes x no larger.
  std::optional<int> NeutralInteger(const Node& node) const {
    const int64_t neutral = node.op->name == "Mul" ? 1 : 0;
    for (int side : {0, 1}) {
      if (side == 1 && node.op->name == "Sub") break;
      const auto values = IntsOf(graph_, node.inputs[1 - side]);
      const TensorType& x = TypeOf(node.inputs[side]);
      if (!values.has_value() || values->empty() || !x.shape.rank_known()) continue;
      if (ConstantOf(graph_, node.inputs[1 - side])->shape().rank() > x.shape.rank() ||
          values->size() != 1 || (*values)[0] != neutral)
        continue;
      return side;
    }
    return std::nullopt;
  }

  // A transposed transpose is one transpose, or none; one that only moves dims of 1 is a reshape.
  bool SimplifyTranspose(int i) {
    const Node& node = graph_.node(i);
    std::optional<Permutation> perm = PermutationOf(graph_, node);
    if (!perm.has_value()) return false;
    ValueRef source = node.inputs[0];
    while (true) {
      const Node& before = graph_.node(source.node);
      const auto inner = PermutationOf(graph_, before);
      if (!inner.has_value() || inner->size() != perm->size() || !before.control_inputs.empty())
        break;
      for (int64_t& axis : *perm) axis = (*inner)[axis];
      source = before.inputs[0];
    }
    const SymShape& shape = TypeOf(source).shape;
    if (!shape.rank_known() || shape.rank() != static_cast<int>(perm->size())) return false;
    if (IsIdentity(*perm)) {
      rebuild_.Replace(i, 0, rebuild_.Map(source));
      return true;
    }
    if (AsReshape(i, source, *perm)) return true;
    if (source == node.inputs[0]) return false;
    Node joined = node;
    joined.inputs = {rebuild_.Map(source), Append(i, "/perm", *perm)};
    joined.attrs.Set("Tperm", DType::kInt64);
    rebuild_.Emit(i, std::move(joined));
    return true;
  }

  // x^2 and x^3 of floats by multiplication, as TensorFlow's own optimizer does.
  bool SimplifyPower(int i) {
    const Node& node = graph_.node(i);
    if (node.op->name != "Pow" || TypeOf(node.inputs[0]).dtype != DType::kFloat32) return false;
    const Tensor* exponent = ConstantOf(graph_, node.inputs[1]);
    const SymShape& shape = TypeOf(node.inputs[0]).shape;
    if (exponent == nullptr || exponent->dtype() != DType::kFloat32 || exponent->elements() != 1 ||
        !shape.rank_known() || exponent->shape().rank() > shape.rank())
      return false;
    const float e = exponent->as<float>()[0];
    if (e != 2 && e != 3) return false;
    Node square;
    square.name = e == 2 ? node.name : absl::StrCat(node.name, "/square");
    square.op = FindOp("Square");
    square.attrs.Set("T", DType::kFloat32);
    square.inputs = {rebuild_.Map(node.inputs[0])};
    if (e == 2) {
      rebuild_.Emit(i, std::move(square));
      return true;
    }
    Node cube;
    cube.name = node.name;
    cube.op = FindOp("Mul");
    cube.attrs.Set("T", DType::kFloat32);
    const ValueRef x = square.inputs[0];
    cube.inputs = {{rebuild_.Append(std::move(square)), 0}, x};
    rebuild_.Emit(i, std::move(cube));
    return true;
  }

  // A Conv2D with one input channel in each group is a depthwise convolution, whose filter has the
  // same numbers in the same order. One for which a route is asked stays: the other has none.
  bool MakeDepthwise(int i) {
    const Node& node = graph_.node(i);
    if (node.op->name != "Conv2D" || node.attrs.String("data_format", "NHWC") != "NHWC" ||
        EpilogueOf(node.attrs).has_residual() || options_.routes.contains(node.name))
      return false;
    const Tensor* filter = ConstantOf(graph_, node.inputs[1]);
    const SymShape& image = TypeOf(node.inputs[0]).shape;
    if (filter == nullptr || filter->elements() == 0 || filter->shape().dim(2) != 1 ||
        !image.rank_known() || !image.dim(3).concrete() || image.dim(3).size() < 2)
      return false;
    const int64_t groups = image.dim(3).size();
    const Shape shape = {filter->shape().dim(0), filter->shape().dim(1), groups,
                         filter->shape().dim(3) / groups};
    Node depthwise = node;
    depthwise.op = FindOp("DepthwiseConv2dNative");
    for (ValueRef& input : depthwise.inputs) input = rebuild_.Map(input);
    depthwise.inputs[1] = {rebuild_.Append(ConstNode(absl::StrCat(node.name, "/depthwise_filter"),
                                                     filter->Reshaped(shape))),
                           0};
    rebuild_.Emit(i, std::move(depthwise));
    return true;
  }

  // Dim 0 must stay, and be the only one that may be open: the rows are there, and a reshape tells
  // rows nowhere else.
  bool AsReshape(int i, ValueRef source, const Permutation& perm) {
    const SymShape& shape = TypeOf(source).shape;
    if (perm.empty() || perm[0] != 0) return false;
    std::vector<int64_t> dims, order;
    for (int64_t axis : perm) {
      const Dim dim = shape.dim(static_cast<int>(axis));
      if (!dim.concrete() || dim.size() != 1) order.push_back(axis);
      if (!dim.concrete() && axis != 0) return false;
      dims.push_back(dim.concrete() ? dim.size() : -1);
      if (dim.concrete() && dim.size() == 0) return false;  // -1 would have no answer
    }
    if (!std::is_sorted(order.begin(), order.end())) return false;
    Node reshape;
    reshape.name = graph_.node(i).name;
    reshape.op = FindOp("Reshape");
    reshape.attrs.Set("Tshape", DType::kInt64);
    reshape.inputs = {rebuild_.Map(source), Append(i, "/shape", dims)};
    rebuild_.Emit(i, std::move(reshape));
    return true;
  }

  ValueRef Append(int i, const char* suffix, const std::vector<int64_t>& values) {
    const Tensor value = Tensor::Vector(DType::kInt64, values);
    return {rebuild_.Append(ConstNode(absl::StrCat(graph_.node(i).name, suffix), value)), 0};
  }

  const Graph& graph_;
  const Analysis& analysis_;
  const KernelOptions& options_;
  Rebuild rebuild_;
};

}  // namespace

absl::Status SimplifyAlgebra(Graph* graph, absl::Span<const TensorType> inputs,
                             const KernelOptions& options) {
  FLOE_ASSIGN_OR_RETURN(const Analysis analysis, AnalyzeWithRows(*graph, inputs, options));
  *graph = Simplifier(*graph, analysis, options).Run();
  return absl::OkStatus();
}

}  // namespace floe
