#include "runtime/passes/recurrent_cell.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/status.h"
#include "model/ops/strided_slice.h"
#include "runtime/evaluate.h"
#include "runtime/passes/graph_util.h"
#include "runtime/passes/recurrent_function.h"

namespace floe {
namespace {

using ops::RecurrentCell;
using ops::RecurrentGate;

enum class Source : uint8_t { kX, kH, kResetH };

// Columns [begin, begin + count) of source * weights, or of the source itself without weights. Of
// the weights only some rows count, when the source was one of several side by side.
struct Term {
  Source source;
  Tensor weights;
  bool transposed = false;
  int64_t begin = 0, count = 0;
  int64_t first_row = 0, rows = 0;
};

// The sum of the terms and the bias, and of `reset` * inner.
struct GateProduct {
  int64_t width = 0;
  std::vector<Term> terms;
  std::vector<float> bias;                   // empty: none
  std::shared_ptr<const GateProduct> inner;  // of h alone
  ValueRef reset;                            // of `inner`, or of h in a term of kResetH
};

constexpr size_t kMostTerms = 3;
constexpr int kDeepest = 24;

struct GateMatch {
  RecurrentGate gate;
  GateProduct sum;
};

// One class: each method recognises one piece of a cell, and all of them fill the same description.
class Matcher {
 public:
  Matcher(const RecurrentStepGraph& step, int h)
      : step_(step), graph_(step.graph), h_index_(h), h_(step.states[h]) {}

  absl::StatusOr<std::optional<MatchedCell>> Run() {
    const bool found = step_.states.size() == 2 ? Lstm() : Gru() || Simple();
    if (!found || !Usable()) return std::nullopt;
    return Build();
  }

 private:
  const Node& At(ValueRef ref) const { return graph_.node(ref.node); }
  bool Is(ValueRef ref, const char* op) const { return At(ref).op->name == op; }

  // ---- sums of products ----

  const GateProduct* Sum(ValueRef ref, int depth = 0) {
    const auto known = sums_.find(ref);
    if (known != sums_.end()) return known->second.get();
    if (depth > kDeepest) return nullptr;
    std::optional<GateProduct> sum = Evaluate(ref, depth + 1);
    if (sum.has_value() && (sum->width < 1 || sum->terms.size() > kMostTerms)) sum.reset();
    auto& kept = sums_[ref];
    if (sum.has_value()) kept = std::make_shared<const GateProduct>(*std::move(sum));
    return kept.get();
  }

  std::optional<GateProduct> Evaluate(ValueRef ref, int depth) {
    if (ref == step_.x) {
      if (step_.x_width < 1) return std::nullopt;
      return GateProduct{
          step_.x_width, {{Source::kX, Tensor(), false, 0, step_.x_width}}, {}, {}, {}};
    }
    const Node& node = At(ref);
    const std::string& op = node.op->name;
    if (op == "MatMul") return Product(node);
    if (op == "Add" || op == "BiasAdd") return Added(node, depth);
    if (op == "Mul") return Reset(node, depth);
    if (const auto whole = CutValue(node)) return Cut(node, ref.output, Sum(*whole, depth));
    return std::nullopt;
  }

  // x of x * 1, as dropout leaves it that drops nothing.
  ValueRef WithoutOnes(ValueRef ref) const {
    for (int depth = 0; depth < kDeepest && Is(ref, "Mul"); ++depth) {
      const auto& in = At(ref).inputs;
      const auto is_one = [&](ValueRef one, ValueRef x) {
        return ConstantFloat(graph_, one) == 1.0f ||
               (Is(one, "OnesLike") && At(one).inputs[0] == x);
      };
      if (is_one(in[1], in[0])) {
        ref = in[0];
      } else if (is_one(in[0], in[1])) {
        ref = in[1];
      } else {
        break;
      }
    }
    return ref;
  }

  std::optional<GateProduct> Product(const Node& node) {
    if (node.inputs.size() != 2) return std::nullopt;
    const Tensor* weights = ConstantOf(graph_, node.inputs[1]);
    if (weights == nullptr || weights->dtype() != DType::kFloat32 || weights->shape().rank() != 2 ||
        weights->elements() == 0 || node.attrs.Bool("transpose_a") ||
        EpilogueOf(node.attrs) != Epilogue())
      return std::nullopt;
    const bool transposed = node.attrs.Bool("transpose_b");
    const int64_t width = weights->shape().dim(transposed ? 0 : 1),
                  rows = weights->shape().dim(transposed ? 1 : 0);
    GateProduct sum{width, {{Source::kX, *weights, transposed, 0, width, 0, rows}}, {}, {}, {}};
    if (Is(node.inputs[0], "ConcatV2")) return ProductOfTwo(At(node.inputs[0]), std::move(sum));
    if (!SetSource(node.inputs[0], &sum, 0)) return std::nullopt;
    return sum;
  }

  // What term `k` is a product of.
  bool SetSource(ValueRef ref, GateProduct* sum, size_t k) const {
    const ValueRef in = WithoutOnes(ref);
    Source& source = sum->terms[k].source;
    if (in == step_.x) {
      source = Source::kX;
    } else if (in == h_) {
      source = Source::kH;
    } else if (const auto other = OtherFactor(in, h_)) {
      source = Source::kResetH;
      sum->reset = *other;
    } else {
      return false;
    }
    return true;
  }

  // x and h side by side, in any order, times weights one above the other.
  std::optional<GateProduct> ProductOfTwo(const Node& both, GateProduct sum) const {
    if (both.inputs.size() != 3 || step_.x_width < 1) return std::nullopt;
    const auto axis = IntOf(graph_, both.inputs[2]);
    if (axis != 1 && axis != -1) return std::nullopt;
    sum.terms.push_back(sum.terms[0]);
    for (size_t k : {0, 1}) {
      if (!SetSource(both.inputs[k], &sum, k)) return std::nullopt;
    }
    if ((sum.terms[0].source == Source::kX) == (sum.terms[1].source == Source::kX))
      return std::nullopt;
    const int64_t rows = sum.terms[0].rows, x = step_.x_width;
    if (rows <= x) return std::nullopt;
    const bool x_first = sum.terms[0].source == Source::kX;
    sum.terms[0].rows = x_first ? x : rows - x;
    sum.terms[1].rows = rows - sum.terms[0].rows;
    sum.terms[1].first_row = sum.terms[0].rows;
    return sum;
  }

  // y where `ref` is y * `factor`.
  std::optional<ValueRef> OtherFactor(ValueRef ref, ValueRef factor) const {
    if (!Is(ref, "Mul")) return std::nullopt;
    const auto& in = At(ref).inputs;
    if (in[0] == factor) return in[1];
    if (in[1] == factor) return in[0];
    return std::nullopt;
  }

  std::optional<GateProduct> Added(const Node& node, int depth) {
    for (int side : {0, 1}) {
      const Tensor* bias = ConstantOf(graph_, node.inputs[side]);
      if (bias == nullptr) continue;
      const GateProduct* sum = Sum(node.inputs[1 - side], depth);
      std::vector<float> values;
      if (sum == nullptr || !AlongAxis(*bias, 2, 1, sum->width, &values)) return std::nullopt;
      GateProduct result = *sum;
      AddTo(values, &result.bias);
      return result;
    }
    const GateProduct *a = Sum(node.inputs[0], depth), *b = Sum(node.inputs[1], depth);
    if (a == nullptr || b == nullptr || a->width != b->width) return std::nullopt;
    // Only one of both may have to do with a reset gate.
    if (b->reset.node >= 0) std::swap(a, b);
    if (b->reset.node >= 0) return std::nullopt;
    GateProduct result = *a;
    result.terms.insert(result.terms.end(), b->terms.begin(), b->terms.end());
    AddTo(b->bias, &result.bias);
    return result;
  }

  static void AddTo(const std::vector<float>& values, std::vector<float>* sum) {
    if (values.empty()) return;
    if (sum->empty()) sum->assign(values.size(), 0.0f);
    for (size_t i = 0; i < values.size(); ++i) (*sum)[i] += values[i];
  }

  // reset * (h R + b)
  std::optional<GateProduct> Reset(const Node& node, int depth) {
    for (int side : {0, 1}) {
      const GateProduct* inner = Sum(node.inputs[side], depth);
      if (inner == nullptr || inner->terms.size() != 1 || inner->inner != nullptr ||
          inner->terms[0].source != Source::kH)
        continue;
      GateProduct sum;
      sum.width = inner->width;
      sum.inner = std::make_shared<const GateProduct>(*inner);
      sum.reset = node.inputs[1 - side];
      return sum;
    }
    return std::nullopt;
  }

  // The value that a node takes columns of; none for other nodes.
  static std::optional<ValueRef> CutValue(const Node& node) {
    const std::string& op = node.op->name;
    if (op == "Split") return node.inputs[1];
    if (op == "SplitV" || op == "StridedSlice") return node.inputs[0];
    return std::nullopt;
  }

  // The columns that output `part` of the node takes of `sum`.
  std::optional<GateProduct> Cut(const Node& node, int part, const GateProduct* sum) const {
    if (sum == nullptr) return std::nullopt;
    if (node.op->name == "Split") return SplitPart(node, part, *sum);
    if (node.op->name == "SplitV") return SplitPartOfSizes(node, part, *sum);
    const auto slice = SliceAlong(graph_, node, 2, 1, sum->width);
    if (!slice.has_value() || slice->shrink) return std::nullopt;
    return Columns(*sum, slice->begin, slice->count);
  }

  std::optional<GateProduct> SplitPart(const Node& node, int part, const GateProduct& sum) const {
    const auto axis = IntOf(graph_, node.inputs[0]);
    if (!axis.has_value() || (*axis != 1 && *axis != -1) || node.num_outputs < 1 ||
        sum.width % node.num_outputs != 0)
      return std::nullopt;
    const int64_t count = sum.width / node.num_outputs;
    return Columns(sum, part * count, count);
  }

  std::optional<GateProduct> SplitPartOfSizes(const Node& node, int part,
                                              const GateProduct& sum) const {
    const auto axis = IntOf(graph_, node.inputs[2]);
    const auto sizes = IntsOf(graph_, node.inputs[1]);
    if (!axis.has_value() || (*axis != 1 && *axis != -1) || !sizes.has_value() ||
        part >= static_cast<int>(sizes->size()))
      return std::nullopt;
    // One of the sizes may be -1: what is left.
    int64_t given = 0, begin = 0;
    for (const int64_t size : *sizes) {
      if (size < -1 || size > sum.width) return std::nullopt;
      given += std::max<int64_t>(size, 0);
    }
    const auto open = std::count(sizes->begin(), sizes->end(), -1);
    if (open > 1 || given > sum.width || (open == 0 && given != sum.width)) return std::nullopt;
    const auto size_of = [&](int k) { return (*sizes)[k] < 0 ? sum.width - given : (*sizes)[k]; };
    for (int k = 0; k < part; ++k) begin += size_of(k);
    if (size_of(part) == 0) return std::nullopt;
    return Columns(sum, begin, size_of(part));
  }

  static std::optional<GateProduct> Columns(GateProduct sum, int64_t begin, int64_t count) {
    if (sum.reset.node >= 0) return std::nullopt;
    sum.width = count;
    for (Term& term : sum.terms) {
      term.begin += begin;
      term.count = count;
    }
    if (!sum.bias.empty()) sum.bias = {sum.bias.begin() + begin, sum.bias.begin() + begin + count};
    return sum;
  }

  // ---- functions ----

  std::optional<AppliedFunction> FunctionOf(ValueRef ref) const {
    return RecurrentFunctionOf(graph_, ref);
  }

  // A function of a sum of products of x and h.
  std::optional<GateMatch> Gate(ValueRef ref) {
    if (const GateProduct* sum = Sum(ref)) return GateMatch{{}, *sum};
    const auto applied = FunctionOf(ref);
    if (applied.has_value()) {
      const GateProduct* sum = Sum(applied->of);
      return sum == nullptr ? std::nullopt : std::make_optional(GateMatch{applied->gate, *sum});
    }
    // Part of what a function gives for several gates.
    const auto whole = CutValue(At(ref));
    const auto of_all = whole.has_value() ? FunctionOf(*whole) : std::nullopt;
    if (!of_all.has_value()) return std::nullopt;
    auto part = Cut(At(ref), ref.output, Sum(of_all->of));
    if (!part.has_value()) return std::nullopt;
    return GateMatch{of_all->gate, *std::move(part)};
  }

  // One of x and one of h, nothing else.
  static bool OfXAndH(const GateProduct& sum) {
    return sum.reset.node < 0 && Only(sum, Source::kX) != nullptr &&
           Only(sum, Source::kH) != nullptr && sum.terms.size() == 2;
  }
  static const Term* Only(const GateProduct& sum, Source source) {
    const Term* found = nullptr;
    for (const Term& term : sum.terms) {
      if (term.source != source) continue;
      if (found != nullptr) return nullptr;
      found = &term;
    }
    return found;
  }
  std::optional<GateMatch> PlainGate(ValueRef ref) {
    auto gate = Gate(ref);
    if (!gate.has_value() || !OfXAndH(gate->sum)) return std::nullopt;
    return gate;
  }

  // ---- cells ----

  // The operands of an Add or Mul in both orders, until `f` is content.
  template <class F>
  bool EitherOrder(ValueRef ref, const char* op, const F& f) const {
    if (!Is(ref, op)) return false;
    const ValueRef a = At(ref).inputs[0], b = At(ref).inputs[1];
    return f(a, b) || f(b, a);
  }

  bool Lstm() {
    const int c_index = 1 - h_index_;
    const ValueRef c = step_.states[c_index], c_next = step_.next[c_index],
                   h_next = step_.next[h_index_];
    return EitherOrder(h_next, "Mul", [&](ValueRef o, ValueRef of_c) {
      const auto out = PlainGate(o);
      if (!out.has_value()) return false;
      RecurrentGate last;
      if (of_c != c_next) {
        const auto applied = FunctionOf(of_c);
        if (!applied.has_value() || applied->of != c_next) return false;
        last = applied->gate;
      }
      return EitherOrder(c_next, "Add", [&](ValueRef kept, ValueRef fresh) {
        const auto forget_ref = OtherFactor(kept, c);
        if (!forget_ref.has_value()) return false;
        const auto forget = PlainGate(*forget_ref);
        if (!forget.has_value()) return false;
        return EitherOrder(fresh, "Mul", [&](ValueRef i, ValueRef g) {
          const auto in = PlainGate(i), value = PlainGate(g);
          if (!in.has_value() || !value.has_value()) return false;
          return Take(RecurrentCell::kLstm, {*in, *forget, *value, *out}, &last);
        });
      });
    });
  }

  bool Gru() {
    const ValueRef next = step_.next[0];
    return EitherOrder(next, "Add", [&](ValueRef kept, ValueRef fresh) {
      const auto z = OtherFactor(kept, h_);
      if (!z.has_value()) return false;
      return EitherOrder(fresh, "Mul", [&](ValueRef rest, ValueRef n) {
        if (!Is(rest, "Sub") || At(rest).inputs[1] != *z ||
            ConstantFloat(graph_, At(rest).inputs[0]) != 1.0f)
          return false;
        const auto update = PlainGate(*z);
        const auto value = Gate(n);
        if (!update.has_value() || !value.has_value() || value->sum.reset.node < 0) return false;
        const auto reset = PlainGate(value->sum.reset);
        if (!reset.has_value()) return false;
        const GateProduct& sum = value->sum;
        const bool after = sum.inner != nullptr;
        const bool fits = Only(sum, Source::kX) != nullptr &&
                          (after ? sum.terms.size() == 1
                                 : sum.terms.size() == 2 && Only(sum, Source::kResetH) != nullptr);
        return fits && Take(after ? RecurrentCell::kGruResetAfter : RecurrentCell::kGruResetBefore,
                            {*update, *reset, *value}, nullptr);
      });
    });
  }

  bool Simple() {
    const auto gate = PlainGate(step_.next[0]);
    return gate.has_value() && Take(RecurrentCell::kSimple, {*gate}, nullptr);
  }

  // ---- the result ----

  // Of two ways to read the same product the one is right whose columns of x lie in order.
  bool Take(RecurrentCell cell, std::vector<GateMatch> gates, const RecurrentGate* last) {
    const bool projected = !Only(gates[0].sum, Source::kX)->weights.valid();
    for (size_t k = 0; k < gates.size(); ++k) {
      const Term& x = *Only(gates[k].sum, Source::kX);
      if (x.weights.valid() == projected) return false;
      if (projected && x.begin != static_cast<int64_t>(k) * gates[0].sum.width) return false;
    }
    cell_ = cell;
    gates_ = std::move(gates);
    functions_.clear();
    for (const GateMatch& gate : gates_) functions_.push_back(gate.gate);
    if (last != nullptr) functions_.push_back(*last);
    projected_ = projected;
    return true;
  }

  static const Term& TermOfH(const GateProduct& sum) {
    if (sum.inner != nullptr) return sum.inner->terms[0];
    const Term* term = Only(sum, Source::kH);
    return term != nullptr ? *term : *Only(sum, Source::kResetH);
  }

  // Every gate is as wide as h, and so is R high.
  bool Usable() const {
    const int64_t units = gates_[0].sum.width;
    int64_t in = -1;
    for (const GateMatch& gate : gates_) {
      const Term &x = *Only(gate.sum, Source::kX), &h = TermOfH(gate.sum);
      if (gate.sum.width != units || h.rows != units) return false;
      if (projected_) continue;
      if ((in >= 0 && x.rows != in) || (step_.x_width >= 0 && x.rows != step_.x_width))
        return false;
      in = x.rows;
    }
    return !projected_ || step_.x_width == units * static_cast<int64_t>(gates_.size());
  }

  // The columns of all gates side by side.
  absl::StatusOr<Tensor> Join(const std::vector<const Term*>& terms) const {
    const Term& first = *terms[0];
    const auto count = static_cast<int64_t>(terms.size());
    const int64_t units = first.count, k = first.rows;
    bool as_is = !first.transposed && first.weights.shape() == Shape({k, units * count});
    for (int64_t g = 0; g < count; ++g)
      as_is = as_is && terms[g]->weights.data() == first.weights.data() &&
              terms[g]->begin == g * units && !terms[g]->transposed;
    if (as_is) return first.weights;
    FLOE_ASSIGN_OR_RETURN(Tensor joined, NewValue(DType::kFloat32, Shape({k, units * count})));
    auto* to = static_cast<float*>(joined.mutable_data());
    for (int64_t row = 0; row < k; ++row) {
      for (const Term* term : terms) {
        const float* from = term->weights.as<float>();
        const int64_t columns = term->weights.shape().dim(1), i = term->first_row + row;
        for (int64_t j = term->begin; j < term->begin + units; ++j)
          *to++ = term->transposed ? from[j * columns + i] : from[i * columns + j];
      }
    }
    return joined;
  }

  absl::StatusOr<std::optional<MatchedCell>> Build() const {
    MatchedCell cell;
    cell.h = h_index_;
    cell.spec.cell = cell_;
    cell.spec.gates = functions_;
    cell.spec.units = gates_[0].sum.width;
    cell.spec.projected = projected_;
    const auto units = static_cast<size_t>(cell.spec.units);
    std::vector<const Term*> of_x, of_h;
    std::vector<float> bias;
    for (const GateMatch& gate : gates_) {
      of_x.push_back(Only(gate.sum, Source::kX));
      of_h.push_back(&TermOfH(gate.sum));
      std::vector<float> own = gate.sum.bias;
      own.resize(units, 0.0f);
      bias.insert(bias.end(), own.begin(), own.end());
    }
    if (!projected_) {
      FLOE_ASSIGN_OR_RETURN(cell.w, Join(of_x));
    }
    FLOE_ASSIGN_OR_RETURN(cell.r, Join(of_h));
    cell.b = Tensor::Vector(DType::kFloat32, bias);
    if (cell_ == RecurrentCell::kGruResetAfter) {
      std::vector<float> inner = gates_[2].sum.inner->bias;
      inner.resize(units, 0.0f);
      cell.rb = Tensor::Vector(DType::kFloat32, inner);
    }
    return cell;
  }

  const RecurrentStepGraph& step_;
  const Graph& graph_;
  const int h_index_;
  const ValueRef h_;
  std::map<ValueRef, std::shared_ptr<const GateProduct>> sums_;
  RecurrentCell cell_ = RecurrentCell::kSimple;
  std::vector<GateMatch> gates_;
  std::vector<RecurrentGate> functions_;
  bool projected_ = false;
};

}  // namespace

std::optional<AxisSlice> SliceAlong(const Graph& graph, const Node& node, int rank, int axis,
                                    int64_t size) {
  if (node.op->name != "StridedSlice" || node.inputs.size() != 4) return std::nullopt;
  const auto begin = IntsOf(graph, node.inputs[1]), end = IntsOf(graph, node.inputs[2]),
             stride = IntsOf(graph, node.inputs[3]);
  if (!begin.has_value() || !end.has_value() || !stride.has_value() ||
      begin->size() != end->size() || begin->size() != stride->size())
    return std::nullopt;
  const auto dims =
      ops::ResolveStridedSlice(ops::SliceMasks(node.attrs), static_cast<int>(begin->size()), rank);
  if (!dims.ok() || static_cast<int>(dims->size()) != rank) return std::nullopt;
  AxisSlice slice{0, size, false};
  for (const ops::SliceDim& dim : *dims) {
    if (dim.axis < 0) return std::nullopt;
    if (dim.entry < 0) continue;
    if ((*stride)[dim.entry] != 1) return std::nullopt;
    int64_t from = dim.begin_masked ? 0 : (*begin)[dim.entry];
    if (dim.axis != axis) {
      if (dim.shrink || from != 0 || !dim.end_masked) return std::nullopt;
      continue;
    }
    from += from < 0 ? size : 0;
    int64_t to = dim.end_masked ? size : (*end)[dim.entry];
    to += to < 0 ? size : 0;
    if (dim.shrink) to = from + 1;
    if (from < 0 || to > size || from >= to) return std::nullopt;
    slice = {from, to - from, dim.shrink};
  }
  return slice;
}

absl::StatusOr<std::optional<MatchedCell>> MatchRecurrentCell(const RecurrentStepGraph& step) {
  const size_t count = step.states.size();
  if (count < 1 || count > 2 || step.next.size() != count) return std::nullopt;
  for (size_t h = 0; h < count; ++h) {
    FLOE_ASSIGN_OR_RETURN(auto cell, Matcher(step, static_cast<int>(h)).Run());
    if (cell.has_value()) return cell;
  }
  return std::nullopt;
}

}  // namespace floe
