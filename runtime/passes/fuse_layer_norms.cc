// Layer normalisation along the last dim. Frameworks write it with two means, or as the training
// form of FusedBatchNorm whose channels are the rows; and scale and shift it in any order.
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
#include "runtime/passes/terms.h"

namespace floe {
namespace {

struct LayerNormMatch {
  ValueRef x;
  float epsilon = 0;
  std::vector<double> scale, offset;
};

// Longer rows are not worth looking at: each constant is read several times.
constexpr int64_t kLongestRow = 1 << 14;

bool IsTrainingNorm(const Node& node) {
  return node.op->name.rfind("FusedBatchNorm", 0) == 0 && node.attrs.Bool("is_training", true) &&
         node.attrs.Float("exponential_avg_factor", 1) == 1 &&
         node.attrs.String("data_format", "NHWC") == "NCHW" && node.control_inputs.empty();
}

bool IsRoot(const Node& node) { return node.op->name == "Rsqrt" || node.op->name == "Sqrt"; }

// Looked at before anything is analysed.
bool MayBeLayerNormPart(const Graph& graph, const Node& node) {
  if (IsTrainingNorm(node)) return true;
  if (!IsRoot(node)) return false;
  const Node& sum = graph.node(node.inputs[0].node);
  return sum.op->name == "Add" && (graph.node(sum.inputs[0].node).op->name == "Mean" ||
                                   graph.node(sum.inputs[1].node).op->name == "Mean");
}

class NormFinder {
 public:
  NormFinder(const Graph& graph, const Analysis& analysis)
      : graph_(graph), analysis_(analysis), uses_(graph) {}

  // By the node that the fused one replaces.
  std::map<int, LayerNormMatch> Find() {
    for (int i = 0; i < graph_.size(); ++i) {
      if (IsRoot(graph_.node(i))) FromRoot(i);
      if (IsTrainingNorm(graph_.node(i))) FromTrainingNorm(i);
    }
    return std::move(matches_);
  }

 private:
  const SymShape& ShapeOf(ValueRef ref) const { return analysis_.at(ref).type.shape; }

  // The length of the rows of `x`, or 0.
  int64_t Width(ValueRef x) const {
    const TensorType& type = analysis_.at(x).type;
    if (type.dtype != DType::kFloat32 || !type.shape.rank_known() || type.shape.rank() < 2)
      return 0;
    const Dim last = type.shape.dim(type.shape.rank() - 1);
    return last.concrete() && last.size() <= kLongestRow ? last.size() : 0;
  }

  // Whether `ref` is the mean along the last dim, which it keeps as a dim of 1.
  bool IsMean(ValueRef ref) const {
    const Node& node = graph_.node(ref.node);
    if (node.op->name != "Mean" || !node.attrs.Bool("keep_dims") || !node.control_inputs.empty())
      return false;
    const int64_t width = Width(node.inputs[0]);
    const Tensor* axes = ConstantOf(graph_, node.inputs[1]);
    if (width == 0 || axes == nullptr || axes->elements() != 1) return false;
    const auto axis = IntegerValues(axes->view());
    const int rank = ShapeOf(node.inputs[0]).rank();
    return axis.ok() && ((*axis)[0] == -1 || (*axis)[0] == rank - 1);
  }

  // sqrt(mean((x - mean(x))^2) + epsilon), or one over it, at node `root`.
  void FromRoot(int root) {
    const Node& sum = graph_.node(graph_.node(root).inputs[0].node);
    if (sum.op->name != "Add" || !graph_.node(root).control_inputs.empty()) return;
    for (const int side : {0, 1}) {
      const Tensor* epsilon = ConstantOf(graph_, sum.inputs[1 - side]);
      const ValueRef variance = sum.inputs[side];
      if (epsilon == nullptr || epsilon->dtype() != DType::kFloat32 || epsilon->elements() != 1 ||
          !IsMean(variance))
        continue;
      const ValueRef squares = graph_.node(variance.node).inputs[0];
      const std::optional<ValueRef> mean = MeanOf(squares);
      if (!mean.has_value()) continue;
      const ValueRef x = graph_.node(mean->node).inputs[0];
      const int rank = ShapeOf(x).rank();
      const int64_t width = Width(x);
      if (epsilon->shape().rank() > rank) continue;
      TermReader inside(graph_, {{x, 0, 1}, {*mean, 1, 1}}, rank, width, &budget_);
      const auto terms = inside.Read(squares);
      const auto all = [&](double v) { return std::vector<double>(width, v); };
      if (!terms.has_value() ||
          !SameTerms(*terms, {{{2, 0, 0}, all(1)}, {{1, 1, 0}, all(-2)}, {{0, 2, 0}, all(1)}}))
        continue;
      std::set<int> members = inside.inner();
      members.insert({mean->node, variance.node, graph_.node(root).inputs[0].node, root});
      const int power = graph_.node(root).op->name == "Rsqrt" ? 1 : -1;
      Complete({x, epsilon->as<float>()[0], {}, {}},
               {{x, 0, 1}, {*mean, 1, 1}, {{root, 0}, 2, power}}, root, members);
      return;
    }
  }

  // The mean whose distance from x is squared: looked for a few operations back.
  std::optional<ValueRef> MeanOf(ValueRef squares) const {
    std::vector<ValueRef> seen = {squares};
    for (size_t next = 0; next < seen.size() && seen.size() < 8; ++next) {
      if (IsMean(seen[next])) return seen[next];
      const Node& node = graph_.node(seen[next].node);
      if (IsArithmetic(node)) seen.insert(seen.end(), node.inputs.begin(), node.inputs.end());
    }
    return std::nullopt;
  }

  // Takes the last of the nodes behind `from` that is scale * (x - mean) * factor + offset. For
  // variables without a mean it is scale * x + offset.
  void Complete(LayerNormMatch match, const std::vector<TermVariable>& variables, int from,
                const std::set<int>& members) {
    const int rank = ShapeOf(match.x).rank();
    const int64_t width = Width(match.x);
    const std::vector<int> ends = Followers(from);
    for (auto end = ends.rbegin(); end != ends.rend(); ++end) {
      if (matches_.count(*end) != 0) continue;
      TermReader reader(graph_, variables, rank, width, &budget_);
      const auto terms = reader.Read({*end, 0});
      if (!terms.has_value() || !Affine(*terms, variables.size() > 1, &match)) continue;
      std::set<int> all = members;
      all.insert(reader.inner().begin(), reader.inner().end());
      if (!OnlyReadInside(graph_, uses_, all, *end)) continue;
      matches_[*end] = std::move(match);
      return;
    }
  }

  // What may end the formula: `from` and the arithmetic behind it.
  std::vector<int> Followers(int from) const {
    constexpr size_t kMost = 16;
    std::set<int> found = {from};
    std::vector<int> next = {from};
    while (!next.empty() && found.size() < kMost) {
      const int i = next.back();
      next.pop_back();
      for (const int user : uses_.users[i]) {
        if (found.size() >= kMost) break;
        if (IsArithmetic(graph_.node(user)) && found.insert(user).second) next.push_back(user);
      }
    }
    return {found.begin(), found.end()};
  }

  bool Affine(const Terms& terms, bool has_mean, LayerNormMatch* match) const {
    const Powers x = has_mean ? Powers{1, 0, 1} : Powers{1, 0, 0}, mean = {0, 1, 1};
    const auto scale = terms.find(x);
    if (scale == terms.end()) return false;
    Terms wanted = {{x, scale->second}};
    match->scale = scale->second;
    match->offset.assign(scale->second.size(), 0);
    if (has_mean) {
      for (const double factor : scale->second) wanted[mean].push_back(-factor);
    }
    const auto offset = terms.find(Powers{});
    if (offset != terms.end()) {
      match->offset = offset->second;
      wanted[Powers{}] = offset->second;
    }
    return SameTerms(terms, wanted);
  }

  // As Keras writes it: x reshaped to [1, rows, width, 1], measured for each of `rows` channels,
  // and back.
  void FromTrainingNorm(int i) {
    const Node& norm = graph_.node(i);
    const Node& before = graph_.node(norm.inputs[0].node);
    const int after = uses_.OnlyUser(i);
    if (before.op->name != "Reshape" || after < 0 || graph_.node(after).op->name != "Reshape" ||
        graph_.node(after).inputs[0].node != i)
      return;
    const ValueRef x = before.inputs[0];
    const int64_t width = Width(x);
    const SymShape& flat = ShapeOf(norm.inputs[0]);
    const Dim one(1);
    if (width == 0 || !flat.rank_known() || flat.rank() != 4 || flat.dim(0) != one ||
        flat.dim(2) != Dim(width) || flat.dim(3) != one || !IsAll(norm.inputs[1], 1) ||
        !IsAll(norm.inputs[2], 0) || !ShapedAs(graph_.node(after).inputs[1], {after, 0}, x))
      return;
    Complete({x, norm.attrs.Float("epsilon", 1e-4f), {}, {}}, {{{after, 0}, 0, 1}}, after,
             {i, after});
  }

  // Whether every element is `number`.
  bool IsAll(ValueRef ref, float number) const {
    const Node& node = graph_.node(ref.node);
    const Tensor* values = ConstantOf(graph_, node.op->name == "Fill" ? node.inputs[1] : ref);
    if (values == nullptr || values->dtype() != DType::kFloat32) return false;
    const auto* data = values->as<float>();
    return std::all_of(data, data + values->elements(), [&](float v) { return v == number; });
  }

  // Whether a Reshape to `shape` gives `out` the shape of `x` in every run. Both have equally many
  // elements, so that one dim may be open.
  bool ShapedAs(ValueRef shape, ValueRef out, ValueRef x) const {
    const Node& node = graph_.node(shape.node);
    if (node.op->name == "Shape" && node.inputs[0] == x) return true;
    const SymShape &a = ShapeOf(out), &b = ShapeOf(x);
    if (!a.rank_known() || !b.rank_known() || a.rank() != b.rank()) return false;
    int open = 0;
    for (int i = 0; i < a.rank(); ++i) {
      if (a.dim(i).concrete() && b.dim(i).concrete()) {
        if (a.dim(i) != b.dim(i) || a.dim(i).size() == 0) return false;
      } else {
        ++open;
      }
    }
    return open <= 1;
  }

  const Graph& graph_;
  const Analysis& analysis_;
  const Uses uses_;
  TermBudget budget_;
  std::map<int, LayerNormMatch> matches_;
};

ValueRef Vector(const std::string& name, const std::vector<double>& values, Rebuild* rebuild) {
  const std::vector<float> numbers(values.begin(), values.end());
  return {rebuild->Append(ConstNode(name, Tensor::Vector(DType::kFloat32, numbers))), 0};
}

}  // namespace

absl::Status FuseLayerNorms(Graph* graph, absl::Span<const TensorType> inputs,
                            const KernelOptions& options) {
  if (std::none_of(graph->nodes().begin(), graph->nodes().end(),
                   [&](const Node& node) { return MayBeLayerNormPart(*graph, node); }))
    return absl::OkStatus();
  FLOE_ASSIGN_OR_RETURN(const Analysis analysis, AnalyzeWithRows(*graph, inputs, options));
  const std::map<int, LayerNormMatch> matches = NormFinder(*graph, analysis).Find();
  if (matches.empty()) return absl::OkStatus();
  *graph =
      ReplaceMatches(*graph, matches, [&](int i, const LayerNormMatch& match, Rebuild* rebuild) {
        Node norm;
        norm.name = graph->node(i).name;
        norm.op = FindOp("LayerNorm");
        norm.attrs.Set("T", DType::kFloat32);
        norm.attrs.Set("epsilon", match.epsilon);
        norm.inputs = {rebuild->Map(match.x),
                       Vector(absl::StrCat(norm.name, "/scale"), match.scale, rebuild),
                       Vector(absl::StrCat(norm.name, "/offset"), match.offset, rebuild)};
        return norm;
      });
  Prune(graph);
  return absl::OkStatus();
}

}  // namespace floe
