#include "runtime/passes/recurrent_loop.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/status.h"
#include "model/effects.h"
#include "model/op_def.h"
#include "runtime/passes/graph_util.h"
#include "runtime/passes/passes.h"

namespace floe {
namespace {

// A dim of a value, followed through ops that keep it or move it.
struct DimOfValue {
  ValueRef value;
  int64_t axis = 0;
  bool operator==(const DimOfValue& o) const { return value == o.value && axis == o.axis; }
};

// One class: each method recognises one piece of a loop, and all of them fill the same description.
class LoopMatcher {
 public:
  LoopMatcher(const RecurrentContext& context, const Node& loop)
      : context_(context), graph_(context.graph), loop_(loop) {}

  absl::StatusOr<std::optional<RecurrentLoop>> Run() {
    if (!Prepare() || !Items() || !Classify() || !Steps() || !Sequences() || !Written())
      return std::nullopt;
    RecurrentStepGraph step{body_, item_, features_, {}, {}};
    for (int k : states_) {
      step.states.push_back(In(k));
      step.next.push_back(Unmasked(body_.outputs[k]).value);
    }
    FLOE_ASSIGN_OR_RETURN(auto cell, MatchRecurrentCell(step));
    if (!cell.has_value()) return std::nullopt;
    found_.cell = *std::move(cell);
    if (!Finish()) return std::nullopt;
    return found_;
  }

 private:
  using End = RecurrentLoop::End;

  ValueRef In(int k) const { return {body_.inputs[k], 0}; }
  ValueRef Outer(int k) const { return loop_.inputs[k]; }
  const TensorType& TypeOf(ValueRef ref) const { return context_.analysis.at(ref).type; }
  const Node& OuterNode(ValueRef ref) const { return graph_.node(ref.node); }

  // Copies of condition and body in a form that is easy to read.
  bool Prepare() {
    const size_t n = loop_.inputs.size();
    condition_ = *loop_.subgraphs[0];
    body_ = *loop_.subgraphs[1];
    if (body_.inputs.size() != n || body_.outputs.size() != n || condition_.inputs.size() != n ||
        condition_.outputs.size() != 1)
      return false;
    std::vector<TensorType> types;
    for (const ValueRef& in : loop_.inputs) {
      types.emplace_back();
      types.back().dtype = TypeOf(in).dtype;
    }
    for (Graph* graph : {&condition_, &body_}) {
      if (!CheckSupported(*graph).ok() || !FoldConstants(graph, types, context_.options).ok())
        return false;
      Prune(graph);
      RemoveIdentities(graph);
      MergeCommonSubexpressions(graph);
      Prune(graph);
      for (const Node& node : graph->nodes()) {
        if (HasEffect(node) || !node.subgraphs.empty()) return false;
      }
    }
    return true;
  }

  // ---- variables ----

  bool Classify() {
    for (int k = 0; k < static_cast<int>(loop_.inputs.size()); ++k) {
      const ValueRef out = body_.outputs[k];
      const DType dtype = TypeOf(Outer(k)).dtype;
      if (out == In(k)) {
        kinds_.push_back(Kind::kSame);
      } else if (dtype == DType::kVariant ||
                 body_.node(out.node).op->name == "TensorArrayWriteV3") {
        if (list_ >= 0 || !IsWrite(k, out)) return false;
        list_ = k;
        kinds_.push_back(Kind::kList);
      } else if (IsCounter(k, out)) {
        kinds_.push_back(Kind::kCounter);
      } else if (dtype == DType::kFloat32) {
        kinds_.push_back(IsOutput(k) ? Kind::kOutput : Kind::kState);
        if (kinds_.back() == Kind::kState) states_.push_back(k);
      } else {
        return false;
      }
    }
    return states_.size() == 1 || states_.size() == 2;
  }

  // Whether nothing reads the variable but where a mask keeps it.
  bool IsOutput(int k) const {
    for (int i = 0; i < body_.size(); ++i) {
      for (size_t j = 0; j < body_.node(i).inputs.size(); ++j) {
        if (body_.node(i).inputs[j] == In(k) && (j != 2 || !Unmasked({i, 0}).masked)) return false;
      }
    }
    return std::find(body_.outputs.begin(), body_.outputs.end(), In(k)) == body_.outputs.end();
  }

  // ---- masks ----

  // What a step gives for rows that see it, and for those that do not.
  struct Choice {
    ValueRef value, otherwise;
    bool masked = false;
  };
  Choice Unmasked(ValueRef ref) const {
    const Node& node = body_.node(ref.node);
    const bool select = node.op->name == "SelectV2" || node.op->name == "Select";
    if (!select || mask_item_.node < 0 || !IsMask(node.inputs[0])) return {ref, {}, false};
    return {node.inputs[1], node.inputs[2], true};
  }

  // The mask of the step, spread over the units.
  bool IsMask(ValueRef ref) const {
    const Node* node = &body_.node(ref.node);
    if (node->op->name == "Tile") {
      const Tensor* multiples = ConstantOf(body_, node->inputs[1]);
      const auto counts = multiples == nullptr
                              ? absl::StatusOr<std::vector<int64_t>>(std::vector<int64_t>())
                              : IntegerValues(multiples->view());
      if (!counts.ok() || counts->size() != 2 || (*counts)[0] != 1) return false;
      ref = node->inputs[0];
    } else if (node->op->name == "ExpandDims") {
      const auto axis = IntOf(body_, node->inputs[1]);
      if (axis != 1 && axis != -1) return false;
      ref = node->inputs[0];
    }
    return ref == mask_item_;
  }

  bool IsZero(ValueRef ref) const {
    const int variable = Variable(body_, ref);
    return variable >= 0 ? kinds_[variable] == Kind::kSame && IsZeroIn(graph_, Outer(variable))
                         : IsZeroIn(body_, ref);
  }
  static bool IsZeroIn(const Graph& graph, ValueRef ref) {
    const Node& node = graph.node(ref.node);
    if (node.op->name == "ZerosLike") return true;
    const Tensor* value = ConstantOf(graph, node.op->name == "Fill" ? node.inputs[1] : ref);
    return value != nullptr && value->dtype() == DType::kFloat32 &&
           std::all_of(value->as<float>(), value->as<float>() + value->elements(),
                       [](float v) { return v == 0 && !std::signbit(v); });
  }

  // Whether a value is the output of every step: h, where a mask is 0 or the output before.
  bool IsOutputValue(ValueRef ref, ValueRef h_next) {
    const Choice choice = Unmasked(ref);
    if (choice.value != h_next || choice.masked != (found_.mask.node >= 0)) return false;
    if (!choice.masked) return true;
    const int variable = Variable(body_, choice.otherwise);
    const bool before = variable >= 0 && kinds_[variable] == Kind::kOutput;
    if (before ? body_.outputs[variable] != ref || !IsZeroIn(graph_, Outer(variable))
               : !IsZero(choice.otherwise))
      return false;
    if (outputs_seen_ && found_.zero_output == before) return false;
    outputs_seen_ = true;
    found_.zero_output = !before;
    return true;
  }

  // Into a list, or an array whose flow is the variable; both have the index and the value there.
  static constexpr int kIndex = 1, kValue = 2;
  bool IsWrite(int k, ValueRef out) const {
    const Node& node = body_.node(out.node);
    const bool list = node.op->name == "TensorListSetItem",
               array = node.op->name == "TensorArrayWriteV3";
    return (list || array) && node.inputs[array ? 3 : 0] == In(k) &&
           Uses(body_).users[body_.inputs[k]].size() == 1;
  }

  bool IsCounter(int k, ValueRef out) const {
    const Node& node = body_.node(out.node);
    const DType dtype = TypeOf(Outer(k)).dtype;
    if (node.op->name != "Add" || (dtype != DType::kInt32 && dtype != DType::kInt64)) return false;
    const auto& shape = TypeOf(Outer(k)).shape;
    if (!shape.rank_known() || shape.rank() != 0) return false;
    for (int side : {0, 1}) {
      const Tensor* one = ConstantOf(body_, node.inputs[1 - side]);
      if (node.inputs[side] == In(k) && one != nullptr && one->shape().rank() == 0)
        return IntOf(body_, node.inputs[1 - side]) == 1;
    }
    return false;
  }

  // Whether the body's value is the number of the step, counted from 0.
  bool IsStep(ValueRef ref) const {
    for (size_t k = 0; k < kinds_.size(); ++k) {
      if (kinds_[k] == Kind::kCounter && ref == In(static_cast<int>(k)))
        return IntOf(graph_, Outer(static_cast<int>(k))) == 0;
    }
    return false;
  }

  // ---- the number of steps ----

  // The least bound of the condition: a number, or values that are proved later to be the length of
  // the sequence.
  bool Steps() {
    if (!Bounds(condition_.outputs[0], 0)) return false;
    if (!known_steps_.has_value()) return !open_steps_.empty();
    return open_steps_.empty() && *known_steps_ > 0;
  }

  bool Bounds(ValueRef ref, int depth) {
    const Node& node = condition_.node(ref.node);
    if (node.op->name == "LogicalAnd" && depth < 4)
      return Bounds(node.inputs[0], depth + 1) && Bounds(node.inputs[1], depth + 1);
    if (node.op->name != "Less") return false;
    const int counter = Variable(condition_, node.inputs[0]);
    if (counter < 0 || kinds_[counter] != Kind::kCounter) return false;
    const auto begin = IntOf(graph_, Outer(counter));
    if (!begin.has_value()) return false;
    auto bound = IntOf(condition_, node.inputs[1]);
    const int variable = Variable(condition_, node.inputs[1]);
    if (!bound.has_value() && variable >= 0 && kinds_[variable] == Kind::kSame) {
      bound = IntOf(graph_, Outer(variable));
      if (!bound.has_value() && *begin == 0) {
        open_steps_.push_back(Outer(variable));
        return true;
      }
    }
    constexpr int64_t kFar = int64_t{1} << 40;
    if (!bound.has_value() || std::abs(*bound) > kFar || std::abs(*begin) > kFar) return false;
    known_steps_ = std::min(known_steps_.value_or(kFar * 2), *bound - *begin);
    return true;
  }

  static int Variable(const Graph& graph, ValueRef ref) {
    const auto at = std::find(graph.inputs.begin(), graph.inputs.end(), ref.node);
    return at == graph.inputs.end() ? -1 : static_cast<int>(at - graph.inputs.begin());
  }

  // The same number, where ops only seem to limit it: Keras takes the largest of one number,
  // TensorFlow 1 min(x, max(1, x)).
  ValueRef WithoutLimits(ValueRef ref) const {
    while (true) {
      const Node& node = OuterNode(ref);
      const std::string& op = node.op->name;
      if (op == "Identity" || (op == "Max" && TypeOf(node.inputs[0]).shape == SymShape())) {
        ref = node.inputs[0];
        continue;
      }
      const char* inner = op == "Minimum" ? "Maximum" : op == "Maximum" ? "Minimum" : nullptr;
      bool absorbed = false;
      for (int side = 0; inner != nullptr && !absorbed && side < 2; ++side) {
        const ValueRef x = node.inputs[side];
        const Node& other = OuterNode(node.inputs[1 - side]);
        absorbed = other.op->name == inner && (other.inputs[0] == x || other.inputs[1] == x);
        if (absorbed) ref = x;
      }
      if (!absorbed) return ref;
    }
  }

  // The dim of some value that a scalar of the loop's graph is; nothing when it is none.
  std::optional<DimOfValue> DimOfScalar(ValueRef ref) const {
    ref = WithoutLimits(ref);
    const Node* node = &OuterNode(ref);
    if (node->op->name != "StridedSlice") return std::nullopt;
    const Node& shape = OuterNode(node->inputs[0]);
    if (shape.op->name != "Shape") return std::nullopt;
    const SymShape& of = TypeOf(shape.inputs[0]).shape;
    if (!of.rank_known()) return std::nullopt;
    const auto slice = SliceAlong(graph_, *node, 1, 0, of.rank());
    if (!slice.has_value() || !slice->shrink) return std::nullopt;
    return Origin({shape.inputs[0], slice->begin});
  }

  DimOfValue Origin(DimOfValue dim) const {
    while (true) {
      const Node& node = OuterNode(dim.value);
      if (node.op->name == "Transpose") {
        const Tensor* perm = ConstantOf(graph_, node.inputs[1]);
        const auto order = perm == nullptr
                               ? absl::StatusOr<std::vector<int64_t>>(std::vector<int64_t>())
                               : IntegerValues(perm->view());
        if (!order.ok() || dim.axis >= static_cast<int64_t>(order->size()) ||
            (*order)[dim.axis] < 0)
          return dim;
        dim.axis = (*order)[dim.axis];
      } else if (node.op->name != "ReverseV2" && node.op->name != "Identity") {
        return dim;
      }
      dim.value = node.inputs[0];
    }
  }

  bool IsLength(ValueRef ref) const {
    const auto dim = DimOfScalar(ref);
    return dim.has_value() && *dim == Origin({found_.sequence, 0});
  }

  // ---- lists ----

  // The only elements that a step reads: of the sequence, and of a mask.
  bool Items() {
    for (int i = 0; i < body_.size(); ++i) {
      const Node& node = body_.node(i);
      const bool array = node.op->name == "TensorArrayReadV3";
      if (!array && node.op->name != "TensorListGetItem") continue;
      const bool mask = node.attrs.Type(array ? "dtype" : "element_dtype") == DType::kBool;
      ValueRef& item = mask ? mask_item_ : item_;
      if (item.node >= 0) return false;
      item = {i, 0};
    }
    return item_.node >= 0;
  }

  bool Sequences() {
    if (!SourceOf(item_, &found_.sequence)) return false;
    const TensorType& type = TypeOf(found_.sequence);
    if (type.dtype != DType::kFloat32 || !type.shape.rank_known() || type.shape.rank() != 3)
      return false;
    if (type.shape.dim(2).concrete()) features_ = type.shape.dim(2).size();
    if (!LengthFits(type.shape.dim(0))) return false;
    found_.backwards = Unreversed(&found_.sequence);
    return mask_item_.node < 0 || MaskFits();
  }

  bool MaskFits() {
    if (!SourceOf(mask_item_, &found_.mask)) return false;
    const TensorType& type = TypeOf(found_.mask);
    const SymShape& shape = type.shape;
    if (type.dtype != DType::kBool || !shape.rank_known() || shape.rank() < 2 || shape.rank() > 3 ||
        (shape.rank() == 3 && shape.dim(2) != Dim(1)))
      return false;
    return Unreversed(&found_.mask) == found_.backwards;
  }

  // What the list is made from that an element is read from at the step.
  bool SourceOf(ValueRef item, ValueRef* source) {
    const Node& node = body_.node(item.node);
    if (node.op->name == "TensorArrayReadV3") return SourceOfArray(node, source);
    const int list = Variable(body_, node.inputs[0]);
    if (list < 0 || kinds_[list] != Kind::kSame || !IsStep(node.inputs[1])) return false;
    const Node& made = OuterNode(Outer(list));
    if (made.op->name != "TensorListFromTensor") return false;
    *source = made.inputs[0];
    return ElementFits(graph_, made.inputs[1]) && ElementFits(body_, node.inputs[2]);
  }

  // The same of an array, which is filled once, from its first element to its last.
  bool SourceOfArray(const Node& read, ValueRef* source) {
    const auto made = ArrayOf(read.inputs[0]);
    const int flow = Variable(body_, read.inputs[2]);
    if (!made.has_value() || flow < 0 || kinds_[flow] != Kind::kSame || !IsStep(read.inputs[1]))
      return false;
    const Node& fill = OuterNode(Outer(flow));
    if (fill.op->name != "TensorArrayScatterV3" || fill.inputs[0] != ValueRef{*made, 0} ||
        fill.inputs[3] != ValueRef{*made, 1})
      return false;
    *source = fill.inputs[2];
    found_.filled.emplace_back(ValueRef{*made, 0}, Outer(flow).node);
    const SymShape& shape = TypeOf(*source).shape;
    if (!shape.rank_known() || shape.rank() < 2) return false;
    return IsWholeRange(fill.inputs[1], *source, shape.dim(0));
  }

  // The TensorArrayV3 whose handle a variable of the loop keeps.
  std::optional<int> ArrayOf(ValueRef handle) const {
    const int variable = Variable(body_, handle);
    if (variable < 0 || kinds_[variable] != Kind::kSame) return std::nullopt;
    const ValueRef made = Outer(variable);
    if (OuterNode(made).op->name != "TensorArrayV3" || made.output != 0 ||
        OuterNode(made).attrs.Bool("dynamic_size"))
      return std::nullopt;
    return made.node;
  }

  // 0, 1, ... to the length of the sequence.
  bool IsWholeRange(ValueRef ref, ValueRef sequence, Dim length) const {
    const Node& node = OuterNode(ref);
    if (node.op->name == "Range") {
      if (IntOf(graph_, node.inputs[0]) != 0 || IntOf(graph_, node.inputs[2]) != 1) return false;
      const auto end = IntOf(graph_, node.inputs[1]);
      if (end.has_value()) return length == Dim(*end);
      const auto dim = DimOfScalar(node.inputs[1]);
      return dim.has_value() && *dim == Origin({sequence, 0});
    }
    const Tensor* values = ConstantOf(graph_, ref);
    return values != nullptr && length == Dim(values->elements()) && CountsUp(*values);
  }

  bool LengthFits(Dim length) {
    if (known_steps_.has_value()) {
      found_.steps = *known_steps_;
      // Of a sequence that is too short both the loop and the layer fail.
      return !length.concrete() || *known_steps_ <= length.size();
    }
    found_.length = open_steps_[0];
    return std::all_of(open_steps_.begin(), open_steps_.end(),
                       [&](ValueRef ref) { return IsLength(ref); });
  }

  // A sequence turned round in time is read from its end.
  bool Unreversed(ValueRef* sequence) const {
    const Node& node = OuterNode(*sequence);
    if (node.op->name != "ReverseV2") return false;
    const auto axis = IntOf(graph_, node.inputs[1]);
    if (axis != 0 && axis != -TypeOf(*sequence).shape.rank()) return false;
    *sequence = node.inputs[0];
    return true;
  }

  // What a list declares of its elements: nothing that its writers do not keep anyway. The batch is
  // left open.
  static bool ElementFits(const Graph& graph, ValueRef ref) {
    const Tensor* shape = ConstantOf(graph, ref);
    if (shape == nullptr) return false;
    const auto dims = IntegerValues(shape->view());
    return dims.ok() && (dims->empty() || (*dims)[0] < 0) && dims->size() <= 2;
  }
  bool ElementFits(const Graph& graph, ValueRef ref, int64_t units) const {
    if (!ElementFits(graph, ref)) return false;
    const auto dims = IntegerValues(ConstantOf(graph, ref)->view());
    return dims->size() != 2 || (*dims)[1] < 0 || (*dims)[1] == units;
  }

  // The list that outputs are written to: all of them, or the last one alone.
  bool Written() {
    found_.counts = open_steps_;
    if (list_ < 0) return true;
    const Node& write = body_.node(body_.outputs[list_].node);
    const Node& made = OuterNode(Outer(list_));
    if (write.op->name == "TensorArrayWriteV3") return ArrayWritten(write);
    if (made.op->name != "TensorListReserve" || write.attrs.Bool("resize_if_index_out_of_bounds"))
      return false;
    if (IsStep(write.inputs[kIndex])) return IsNumberOfSteps(made.inputs[1]);
    only_last_ = true;
    return IntOf(body_, write.inputs[kIndex]) == 0 && IntOf(graph_, made.inputs[1]) == 1;
  }

  bool ArrayWritten(const Node& write) {
    const auto made = ArrayOf(write.inputs[0]);
    if (!made.has_value() || Outer(list_) != ValueRef{*made, 1} || !IsStep(write.inputs[kIndex]))
      return false;
    found_.written = {*made, 0};
    const ValueRef size = graph_.node(*made).inputs[0];
    found_.counts.push_back(size);
    return IsNumberOfSteps(size);
  }

  bool IsNumberOfSteps(ValueRef ref) const {
    return known_steps_.has_value() ? IntOf(graph_, ref) == known_steps_ : IsLength(ref);
  }

  // ---- the result ----

  bool Finish() {
    const int64_t units = found_.cell.spec.units;
    const int h = states_[found_.cell.h];
    const ValueRef h_next = Unmasked(body_.outputs[h]).value;
    found_.states = {Outer(h)};
    if (states_.size() == 2) found_.states.push_back(Outer(states_[1 - found_.cell.h]));
    if (!StateFits(found_.states, units) || !StatesKept()) return false;
    if (list_ >= 0 &&
        (!IsOutputValue(body_.node(body_.outputs[list_].node).inputs[kValue], h_next) ||
         !ListFits(units)))
      return false;
    for (int k = 0; k < static_cast<int>(kinds_.size()); ++k) {
      switch (kinds_[k]) {
        case Kind::kSame:
          found_.ends.push_back(End::kSame);
          break;
        case Kind::kCounter:
          found_.ends.push_back(End::kSteps);
          break;
        case Kind::kList:
          found_.ends.push_back(only_last_ ? End::kLastAsList : End::kSequence);
          break;
        case Kind::kState:
          found_.ends.push_back(k == h ? End::kH : End::kC);
          break;
        case Kind::kOutput:
          if (!IsOutputValue(body_.outputs[k], h_next)) return false;
          found_.ends.push_back(End::kOutput);
          break;
      }
    }
    found_.output_is_h =
        found_.mask.node < 0 || (!found_.zero_output && IsZeroIn(graph_, found_.states[0]));
    return true;
  }

  bool ListFits(int64_t units) const {
    const Node& made = OuterNode(Outer(list_));
    return made.op->name == "TensorListReserve" ? ElementFits(graph_, made.inputs[0], units)
                                                : floe::ElementFits(made, units);
  }

  // Where there is a mask, every state is kept by it.
  bool StatesKept() const {
    return std::all_of(states_.begin(), states_.end(), [&](int k) {
      const Choice choice = Unmasked(body_.outputs[k]);
      return choice.masked == (found_.mask.node >= 0) &&
             (!choice.masked || choice.otherwise == In(k));
    });
  }

  // The loop multiplies h by R, and would fail for another number of units. c may be broadcast.
  bool StateFits(const std::vector<ValueRef>& states, int64_t units) const {
    for (const ValueRef& state : states) {
      const SymShape& shape = TypeOf(state).shape;
      if (shape.rank_known() &&
          (shape.rank() != 2 || (shape.dim(1).concrete() && shape.dim(1) != Dim(units))))
        return false;
    }
    const ValueRef c = states.back();
    const SymShape& shape = TypeOf(c).shape;
    const auto left = context_.units.find(c);
    return states.size() == 1 || (shape.rank_known() && shape.dim(1) == Dim(units)) ||
           (left != context_.units.end() && left->second == units) || FilledWidth(c) == units;
  }

  // Dim 1 of a Fill whose dims are put together in front of it.
  std::optional<int64_t> FilledWidth(ValueRef ref) const {
    const Node& fill = OuterNode(ref);
    if (fill.op->name != "Fill") return std::nullopt;
    const Node& dims = OuterNode(fill.inputs[0]);
    const bool two = (dims.op->name == "Pack" && dims.inputs.size() == 2) ||
                     (dims.op->name == "ConcatV2" && dims.inputs.size() == 3);
    return two ? IntOf(graph_, dims.inputs[1]) : std::nullopt;
  }

  enum class Kind : uint8_t { kSame, kCounter, kList, kState, kOutput };

  const RecurrentContext& context_;
  const Graph& graph_;
  const Node& loop_;
  Graph condition_, body_;
  std::vector<Kind> kinds_;
  std::vector<int> states_;
  int list_ = -1;
  bool only_last_ = false;
  std::optional<int64_t> known_steps_;
  std::vector<ValueRef> open_steps_;
  ValueRef item_, mask_item_;
  bool outputs_seen_ = false;  // then found_.zero_output is settled
  int64_t features_ = -1;
  RecurrentLoop found_;
};

}  // namespace

bool ElementFits(const Node& array, int64_t units) {
  const auto shape = array.attrs.Get<SymShape>("element_shape", SymShape::UnknownRank());
  if (!shape.rank_known()) return true;
  return shape.rank() == 2 && !shape.dim(0).concrete() &&
         (!shape.dim(1).concrete() || shape.dim(1) == Dim(units));
}

bool CountsUp(const Tensor& values) {
  const auto numbers = IntegerValues(values.view());
  if (!numbers.ok()) return false;
  for (size_t i = 0; i < numbers->size(); ++i) {
    if ((*numbers)[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

absl::StatusOr<std::optional<RecurrentLoop>> MatchRecurrentLoop(const RecurrentContext& context,
                                                                const Node& loop) {
  return LoopMatcher(context, loop).Run();
}

}  // namespace floe
