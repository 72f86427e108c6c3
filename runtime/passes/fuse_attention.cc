// The product of queries and keys, its scaling and mask, Softmax along the keys, and the product
// with the values: as Keras writes them with Einsum, or with BatchMatMul and Transposes.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/status.h"
#include "model/op_def.h"
#include "model/ops/einsum.h"
#include "runtime/analyze.h"
#include "runtime/passes/graph_util.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/rebuild.h"

namespace floe {
namespace {

// A value and the meaning of its axes, as the op's attributes have it.
struct Operand {
  ValueRef value;
  std::string layout;
};

struct Match {
  Operand q, k, v;
  std::string out;
  float scale = 1;
  std::optional<ValueRef> mask;
  std::optional<float> fill;  // the mask has bools
  bool zero = false;
};

// Looked at before anything is analysed: a Softmax that is the answer needs no more.
bool MayBePart(const Graph& graph, const Node& node) {
  const std::string& op = node.op->name;
  if (op != "Einsum" && op != "BatchMatMul") return false;
  return std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueRef in) {
    const std::string& from = graph.node(in.node).op->name;
    return from == "Softmax" || from == "SelectV2";
  });
}

// One class: each method recognises one piece of attention, and all of them fill the same
// description.
class AttentionFinder {
 public:
  AttentionFinder(const Graph& graph, const Analysis& analysis)
      : graph_(graph), analysis_(analysis), uses_(graph) {}

  // By the node that the fused one replaces.
  std::map<int, Match> Find() const {
    std::map<int, Match> matches;
    for (int i = 0; i < graph_.size(); ++i) {
      if (graph_.node(i).op->name != "Softmax") continue;
      Match match;
      const int end = FromSoftmax(i, &match);
      if (end >= 0) matches[end] = std::move(match);
    }
    return matches;
  }

 private:
  const TensorType& TypeOf(ValueRef ref) const { return analysis_.at(ref).type; }

  // A node without control edges, of which only `reader` reads anything.
  bool Between(ValueRef ref, int reader) const {
    return ref.output == 0 && uses_.OnlyUser(ref.node) == reader &&
           graph_.node(ref.node).control_inputs.empty();
  }

  int FromSoftmax(int softmax, Match* match) const {
    const ValueRef scores = graph_.node(softmax).inputs[0];
    const TensorType& type = TypeOf(scores);
    if (type.dtype != DType::kFloat32 || !type.shape.rank_known() ||
        !graph_.node(softmax).control_inputs.empty())
      return -1;
    const int rank = type.shape.rank();
    if (rank != 3 && rank != 4) return -1;
    if (!TakeScaled(scores, softmax, rank, match) && !TakeMasked(scores, softmax, rank, match) &&
        !TakeSelected(scores, softmax, rank, match))
      return -1;
    int weights = softmax;
    int product = uses_.OnlyUser(weights);
    if (product >= 0 && IsZeroed(product, softmax, *match)) {
      match->zero = true;
      weights = product;
      product = uses_.OnlyUser(weights);
    }
    const int end = product < 0 ? -1 : TakeProduct(product, weights, rank, match);
    if (end >= 0) TakeScaleOfQueries(rank, match);
    return end;
  }

  // Queries that nobody else reads may be scaled as scores.
  void TakeScaleOfQueries(int rank, Match* match) const {
    const int scaled = match->q.value.node;
    const Node& node = graph_.node(scaled);
    if (node.op->name != "Mul" || uses_.OnlyUser(scaled) < 0 || !node.control_inputs.empty())
      return;
    for (const int side : {0, 1}) {
      const Tensor* factor = ConstantOf(graph_, node.inputs[1 - side]);
      if (factor == nullptr || factor->dtype() != DType::kFloat32 || factor->elements() != 1 ||
          factor->shape().rank() > rank)
        continue;
      match->scale *= factor->as<float>()[0];
      match->q.value = node.inputs[side];
      return;
    }
  }

  // A Select of `value` where a mask holds, and of one number elsewhere.
  std::optional<float> Otherwise(int select, ValueRef value) const {
    const Node& node = graph_.node(select);
    if (node.op->name != "SelectV2" || !(node.inputs[1] == value) || !node.control_inputs.empty())
      return std::nullopt;
    const Tensor* number = ConstantOf(graph_, node.inputs[2]);
    if (number == nullptr || number->dtype() != DType::kFloat32 || number->elements() != 1 ||
        number->shape().rank() > TypeOf(value).shape.rank())
      return std::nullopt;
    return number->as<float>()[0];
  }

  bool TakeSelected(ValueRef select, int reader, int rank, Match* match) const {
    const Node& node = graph_.node(select.node);
    if (node.op->name != "SelectV2" || !Between(select, reader)) return false;
    const std::optional<float> fill = Otherwise(select.node, node.inputs[1]);
    if (!fill.has_value() || !Fits(node.inputs[0], node.inputs[1], DType::kBool) ||
        !TakeScaled(node.inputs[1], select.node, rank, match))
      return false;
    match->mask = node.inputs[0];
    match->fill = fill;
    return true;
  }

  // Whether the node gives masked weights the value 0.
  bool IsZeroed(int select, int softmax, const Match& match) const {
    const std::optional<float> number = Otherwise(select, {softmax, 0});
    return number.has_value() && *number == 0 && match.fill.has_value() &&
           graph_.node(select).inputs[0] == *match.mask;
  }

  // scores + mask, where the mask has no more places than the scores.
  bool TakeMasked(ValueRef sum, int reader, int rank, Match* match) const {
    const Node& node = graph_.node(sum.node);
    if (node.op->name != "Add" || !Between(sum, reader)) return false;
    for (const int side : {0, 1}) {
      const ValueRef scores = node.inputs[side], mask = node.inputs[1 - side];
      if (!Fits(mask, scores, DType::kFloat32) || !TakeScaled(scores, sum.node, rank, match))
        continue;
      match->mask = mask;
      return true;
    }
    return false;
  }

  bool Fits(ValueRef mask, ValueRef scores, DType dtype) const {
    const TensorType &m = TypeOf(mask), &s = TypeOf(scores);
    if (m.dtype != dtype || !m.shape.rank_known() || !s.shape.rank_known() ||
        m.shape.rank() > s.shape.rank())
      return false;
    // The op broadcasts batch and heads itself, but neither queries nor keys.
    for (int i = 1; i <= std::min(2, m.shape.rank()); ++i) {
      const Dim of_mask = m.shape.dim(m.shape.rank() - i),
                of_scores = s.shape.dim(s.shape.rank() - i);
      if (of_mask != Dim(1) && (!of_mask.known() || of_mask != of_scores)) return false;
    }
    return true;
  }

  // scores, scores * constant or scores / constant.
  bool TakeScaled(ValueRef at, int reader, int rank, Match* match) const {
    if (!Between(at, reader)) return false;
    const Node& node = graph_.node(at.node);
    const bool divides = node.op->name == "RealDiv";
    match->scale = 1;
    if (node.op->name != "Mul" && !divides) return TakeScores(at, rank, match);
    for (const int side : {0, 1}) {
      if (divides && side == 1) break;
      const ValueRef scores = node.inputs[side];
      const Tensor* factor = ConstantOf(graph_, node.inputs[1 - side]);
      if (factor == nullptr || factor->dtype() != DType::kFloat32 || factor->elements() != 1 ||
          factor->shape().rank() > rank || !Between(scores, at.node))
        continue;
      const float number = factor->as<float>()[0];
      match->scale = divides ? 1 / number : number;
      return TakeScores(scores, rank, match);
    }
    return false;
  }

  bool TakeScores(ValueRef at, int rank, Match* match) const {
    const Node& node = graph_.node(at.node);
    if (node.op->name == "Transpose") return TakeTurnedScores(at, rank, match);
    if (EpilogueOf(node.attrs) != Epilogue() || node.inputs.size() != 2 || !AreData(node, rank))
      return false;
    if (node.op->name == "Einsum") return TakeEinsumScores(node, rank, match);
    if (node.op->name != "BatchMatMul" || node.attrs.Bool("adj_x")) return false;
    match->q = Transposed(node.inputs[0], rank, false);
    match->k = Transposed(node.inputs[1], rank, !node.attrs.Bool("adj_y"));
    return true;
  }

  // Keys times queries, turned over.
  bool TakeTurnedScores(ValueRef turned, int rank, Match* match) const {
    const Node& product = graph_.node(graph_.node(turned.node).inputs[0].node);
    const std::string over = rank == 3 ? "BHT" : "BNHT";
    if (LayoutBefore(turned, over) != (rank == 3 ? "BTH" : "BNTH") ||
        !Between(graph_.node(turned.node).inputs[0], turned.node) ||
        product.op->name != "BatchMatMul" || product.inputs.size() != 2 ||
        !AreData(product, rank) || product.attrs.Bool("adj_x"))
      return false;
    match->k = Transposed(product.inputs[0], rank, false);
    match->q = Transposed(product.inputs[1], rank, !product.attrs.Bool("adj_y"));
    return IsPlain(match->q.layout);
  }

  // Two float32 values of this rank that are no constants, which would be packed when loading.
  bool AreData(const Node& node, int rank) const {
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueRef in) {
      const TensorType& type = TypeOf(in);
      return type.dtype == DType::kFloat32 && type.shape.rank_known() &&
             type.shape.rank() == rank && ConstantOf(graph_, in) == nullptr;
    });
  }

  // An operand of BatchMatMul, [B, N, T, H] or, when `turned`, [B, N, H, T]; a Transpose that puts
  // another layout in this order is passed over.
  Operand Transposed(ValueRef value, int rank, bool turned) const {
    const std::string plain = rank == 3 ? (turned ? "BHT" : "BTH") : (turned ? "BNHT" : "BNTH");
    const std::optional<std::string> from = LayoutBefore(value, plain);
    if (!from.has_value()) return {value, plain};
    const bool known = *from == "BTNH" || *from == "BNTH" || *from == "BTH";
    return known ? Operand{graph_.node(value.node).inputs[0], *from} : Operand{value, plain};
  }

  // The layout of what the Transpose `value` turns into `layout`.
  std::optional<std::string> LayoutBefore(ValueRef value, const std::string& layout) const {
    const Node& node = graph_.node(value.node);
    if (node.op->name != "Transpose" || !node.control_inputs.empty() ||
        node.attrs.Bool("conjugate"))
      return std::nullopt;
    const Tensor* constant = ConstantOf(graph_, node.inputs[1]);
    if (constant == nullptr) return std::nullopt;
    const auto perm = IntegerValues(constant->view());
    if (!perm.ok() || perm->size() != layout.size()) return std::nullopt;
    std::string before(layout.size(), ' ');
    for (size_t i = 0; i < perm->size(); ++i) {
      const int64_t axis = (*perm)[i];
      if (axis < 0 || axis >= static_cast<int64_t>(before.size()) || before[axis] != ' ')
        return std::nullopt;
      before[axis] = layout[i];
    }
    return before;
  }

  // Labels as letters: `names` has a letter for each of `labels`.
  static std::string Named(const std::vector<int>& labels, const std::map<int, char>& names) {
    std::string layout;
    for (const int label : labels) {
      const auto name = names.find(label);
      layout += name == names.end() ? '?' : name->second;
    }
    return layout;
  }

  static bool IsPlain(const std::string& layout) {
    return layout == "BTNH" || layout == "BNTH" || layout == "BTH";
  }

  std::optional<ops::EinsumLabels> LabelsOf(const Node& node, int rank) const {
    auto labels = ops::ParseEinsum(node.attrs.String("equation"), {rank, rank});
    if (!labels.ok() || static_cast<int>(labels->output.size()) != rank ||
        std::find(labels->broadcasts.begin(), labels->broadcasts.end(), true) !=
            labels->broadcasts.end())
      return std::nullopt;
    return *std::move(labels);
  }

  // [b, n, t, h] and [b, n, s, h] in any order give [b, n, t, s].
  bool TakeEinsumScores(const Node& node, int rank, Match* match) const {
    const auto labels = LabelsOf(node, rank);
    if (!labels.has_value() || labels->count != rank + 1) return false;
    const std::vector<int>& out = labels->output;
    std::map<int, char> query, key;
    query[out[0]] = key[out[0]] = 'B';
    if (rank == 4) query[out[1]] = key[out[1]] = 'N';
    query[out[rank - 2]] = 'T';
    key[out[rank - 1]] = 'T';
    for (int label = 0; label < labels->count; ++label) {
      if (std::find(out.begin(), out.end(), label) == out.end()) query[label] = key[label] = 'H';
    }
    for (const int side : {0, 1}) {
      const std::string q = Named(labels->inputs[side], query),
                        k = Named(labels->inputs[1 - side], key);
      if (!IsPlain(q) || (!IsPlain(k) && k != "BNHT" && k != "BHT")) continue;
      match->q = {node.inputs[side], q};
      match->k = {node.inputs[1 - side], k};
      return true;
    }
    return false;
  }

  // The product with the values; the last node of it, or -1.
  int TakeProduct(int product, int softmax, int rank, Match* match) const {
    const Node& node = graph_.node(product);
    if (node.inputs.size() != 2 || !AreData(node, rank) || !node.control_inputs.empty() ||
        node.inputs[0] == node.inputs[1])
      return -1;
    if (node.op->name == "Einsum") return TakeEinsumProduct(product, softmax, rank, match);
    if (node.op->name != "BatchMatMul" || node.inputs[0].node != softmax ||
        node.attrs.Bool("adj_x") || node.attrs.Bool("adj_y"))
      return -1;
    match->v = Transposed(node.inputs[1], rank, false);
    match->out = rank == 3 ? "BTH" : "BNTH";
    const int after = uses_.OnlyUser(product);
    if (after >= 0 && rank == 4) {
      // The layout before the inverse, which this permutation is of itself.
      const auto layout = LayoutBefore({after, 0}, "BTNH");
      if (layout == "BNTH") {
        match->out = "BTNH";
        return after;
      }
    }
    return product;
  }

  int TakeEinsumProduct(int product, int softmax, int rank, Match* match) const {
    const Node& node = graph_.node(product);
    const int side = node.inputs[0].node == softmax ? 0 : 1;
    const auto labels = LabelsOf(node, rank);
    if (!labels.has_value() || labels->count != rank + 1) return -1;
    const std::vector<int>& scores = labels->inputs[side];
    std::map<int, char> values, out;
    values[scores[0]] = out[scores[0]] = 'B';
    if (rank == 4) values[scores[1]] = out[scores[1]] = 'N';
    out[scores[rank - 2]] = 'T';
    values[scores[rank - 1]] = 'T';
    for (int label = 0; label < labels->count; ++label) {
      if (std::find(scores.begin(), scores.end(), label) == scores.end())
        values[label] = out[label] = 'H';
    }
    const std::string v = Named(labels->inputs[1 - side], values), o = Named(labels->output, out);
    // Scores that name an axis twice would leave too few letters.
    if (!IsPlain(v) || !IsPlain(o)) return -1;
    match->v = {node.inputs[1 - side], v};
    match->out = o;
    return product;
  }

  const Graph& graph_;
  const Analysis& analysis_;
  const Uses uses_;
};

}  // namespace

absl::Status FuseAttention(Graph* graph, absl::Span<const TensorType> inputs,
                           const KernelOptions& options) {
  if (std::none_of(graph->nodes().begin(), graph->nodes().end(),
                   [&](const Node& node) { return MayBePart(*graph, node); }))
    return absl::OkStatus();
  FLOE_ASSIGN_OR_RETURN(const Analysis analysis, AnalyzeWithRows(*graph, inputs, options));
  const std::map<int, Match> matches = AttentionFinder(*graph, analysis).Find();
  if (matches.empty()) return absl::OkStatus();
  *graph = ReplaceMatches(*graph, matches, [&](int i, const Match& match, Rebuild* rebuild) {
    Node node;
    node.name = graph->node(i).name;
    node.op = FindOp("Attention");
    node.attrs.Set("T", DType::kFloat32);
    node.attrs.Set("scale", match.scale);
    node.attrs.Set("q", match.q.layout);
    node.attrs.Set("k", match.k.layout);
    node.attrs.Set("v", match.v.layout);
    node.attrs.Set("out", match.out);
    for (const Operand& operand : {match.q, match.k, match.v})
      node.inputs.push_back(rebuild->Map(operand.value));
    if (match.mask.has_value()) node.inputs.push_back(rebuild->Map(*match.mask));
    if (match.fill.has_value()) node.attrs.Set("fill", *match.fill);
    node.attrs.Set("zero", match.zero);
    return node;
  });
  Prune(graph);
  return absl::OkStatus();
}

}  // namespace floe
