#include "model/import/keras/recurrent.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace floe::keras {
namespace {

TensorType TypeOf(DType dtype, SymShape shape) { return {dtype, std::move(shape), nullptr}; }

// The shape of one step of a sequence in time order.
SymShape StepShape(const GraphBuilder& b, ValueRef x) {
  SymShape step;
  for (int k = 1; k < b.shape(x).rank(); ++k) step.push_back(SizeAt(b, x, k));
  return step;
}

ValueRef ElementShape(GraphBuilder& b, const SymShape& shape) {
  std::vector<int64_t> dims;
  for (const Dim dim : shape.dims()) dims.push_back(dim.concrete() ? dim.size() : -1);
  return Ints(b, dims);
}

ValueRef TimeMajor(GraphBuilder& b, ValueRef x, bool backwards) {
  std::vector<int64_t> order{1, 0};
  const int rank = Rank(b, x);
  for (int k = 2; k < rank; ++k) order.push_back(k);
  const ValueRef y = Transpose(b, x, order);
  return backwards ? b.Op("ReverseV2", {y, Ints(b, {0})}) : y;
}

// A mask [batch] in a shape that broadcasts with x.
ValueRef Spread(GraphBuilder& b, ValueRef mask, ValueRef x) {
  const int rank = Rank(b, x);
  while (b.ok() && Rank(b, mask) < rank) mask = ExpandDims(b, mask, Rank(b, mask));
  return mask;
}

// The loop's variables, in order: step, steps, inputs, [mask], [outputs], [output], states.
class Loop {
 public:
  Loop(GraphBuilder& b, Cell& cell, const Sequence& s) : b_(b), cell_(cell), s_(s) {}

  SequenceResult Run() {
    const ValueRef x = TimeMajor(b_, s_.x, s_.backwards);
    const WantedDim steps = DimOf(b_, x, 0);
    step_shape_ = StepShape(b_, x);
    if (!b_.ok()) return {};
    Learn();
    if (!b_.ok()) return {};
    const ValueRef count = steps.fixed() ? Int(b_, steps.size) : At(b_, b_.Op("Shape", {x}), 0, 0);
    std::vector<ValueRef> variables{Int(b_, 0), count, ListOf(x, step_shape_)};
    if (masked()) {
      const ValueRef mask = TimeMajor(b_, Cast(b_, s_.mask, DType::kBool), s_.backwards);
      mask_shape_ = StepShape(b_, mask);
      variables.push_back(ListOf(mask, mask_shape_));
    }
    if (s_.return_sequences)
      variables.push_back(b_.Op("TensorListReserve", {ElementShape(b_, output_.shape), count},
                                {{"element_dtype", output_.dtype}}));
    if (keeps_output()) variables.push_back(ZeroOutput());
    variables.insert(variables.end(), s_.states.begin(), s_.states.end());
    return Collect(While(variables));
  }

 private:
  bool masked() const { return s_.mask.node >= 0; }
  // The output of the last step, for the result or for steps that are masked.
  bool keeps_output() const {
    return !s_.return_sequences || (masked() && !s_.zero_output_for_mask);
  }

  ValueRef ListOf(ValueRef x, const SymShape& element) {
    return b_.Op("TensorListFromTensor", {x, ElementShape(b_, element)},
                 {{"element_dtype", b_.dtype(x)}});
  }

  // The type of a step's output, from a step that is not kept.
  void Learn() {
    GraphBuilder trial;
    const ValueRef x = Input(trial, "x", TypeOf(b_.dtype(s_.x), step_shape_));
    std::vector<ValueRef> states;
    for (size_t k = 0; k < s_.states.size(); ++k)
      states.push_back(Input(trial, absl::StrCat("s", k), b_.type(s_.states[k])));
    const CellStep step = cell_.Step(trial, x, states);
    b_.Fail(trial.status());
    if (!b_.ok()) return;
    output_ = trial.type(step.output);
    if (step.states.size() != s_.states.size())
      b_.Fail(absl::StrCat("it is given ", s_.states.size(), " states, ", step.states.size(),
                           " are needed"));
  }

  ValueRef ZeroOutput() {
    std::vector<WantedDim> dims{DimOf(b_, s_.x, 0)};
    for (int k = 1; k < output_.shape.rank(); ++k) {
      const Dim dim = output_.shape.dim(k);
      if (!dim.concrete()) b_.Fail("the size of its output is not known");
      dims.emplace_back(dim.concrete() ? dim.size() : 1);
    }
    return Fill(b_, dims, Scalar(b_, output_.dtype, 0));
  }

  std::vector<ValueRef> Inputs(GraphBuilder& sub, const std::vector<ValueRef>& variables) {
    std::vector<ValueRef> inputs;
    for (size_t k = 0; k < variables.size(); ++k) {
      TensorType type = b_.type(variables[k]);
      // Values that the loop changes may be of any batch.
      if (type.dtype != DType::kVariant && type.shape.rank_known() && type.shape.rank() > 0)
        type.shape.set_dim(0, Dim::Unknown());
      inputs.push_back(Input(sub, absl::StrCat("v", k), type));
    }
    return inputs;
  }

  std::vector<ValueRef> While(const std::vector<ValueRef>& variables) {
    GraphBuilder condition, body;
    const std::vector<ValueRef> tested = Inputs(condition, variables);
    const ValueRef again = condition.Op("Less", {tested[0], tested[1]});
    condition.graph().outputs = {again};
    body.graph().outputs = Body(body, Inputs(body, variables));
    b_.Fail(condition.status());
    b_.Fail(body.status());
    if (!b_.ok()) return {};
    Node node;
    node.op = FindTensorFlowOp("While");
    node.name = absl::StrCat(b_.scope(), "/while");
    node.inputs = variables;
    node.subgraphs = {std::make_shared<const Graph>(std::move(condition.graph())),
                      std::make_shared<const Graph>(std::move(body.graph()))};
    std::vector<TensorType> types;
    types.reserve(variables.size());
    for (const ValueRef& v : variables) types.push_back(b_.type(v));
    return b_.Raw(std::move(node), std::move(types));
  }

  std::vector<ValueRef> Body(GraphBuilder& g, const std::vector<ValueRef>& v) {
    size_t at = 2;
    const auto item = [&](const SymShape& shape, DType dtype) {
      const ValueRef value = g.Op("TensorListGetItem", {v[at], v[0], ElementShape(g, shape)},
                                  {{"element_dtype", dtype}});
      g.Refine(value, shape);
      ++at;
      return value;
    };
    std::vector<ValueRef> next{Add(g, v[0], 1.0), v[1], v[2]};
    const ValueRef x = item(step_shape_, b_.dtype(s_.x));
    ValueRef mask;
    if (masked()) {
      next.push_back(v[at]);
      mask = item(mask_shape_, DType::kBool);
    }
    const size_t list = at;
    at += s_.return_sequences ? 1 : 0;
    const ValueRef before = keeps_output() ? v[at] : ValueRef();
    at += keeps_output() ? 1 : 0;
    const std::vector<ValueRef> states(v.begin() + static_cast<int64_t>(at), v.end());
    CellStep step = cell_.Step(g, x, states);
    if (!g.ok()) return {};
    if (masked()) {
      const ValueRef otherwise =
          s_.zero_output_for_mask ? Scalar(g, g.dtype(step.output), 0) : before;
      const auto choose = [&](ValueRef a, ValueRef other) {
        return g.Op("SelectV2", {Spread(g, mask, a), a, other});
      };
      step.output = choose(step.output, otherwise);
      for (size_t k = 0; k < states.size(); ++k) step.states[k] = choose(step.states[k], states[k]);
    }
    if (s_.return_sequences)
      next.push_back(g.Op("TensorListSetItem", {v[list], v[0], step.output},
                          {{"element_dtype", output_.dtype}}));
    if (keeps_output()) next.push_back(step.output);
    next.insert(next.end(), step.states.begin(), step.states.end());
    return next;
  }

  SequenceResult Collect(const std::vector<ValueRef>& v) {
    if (!b_.ok()) return {};
    SequenceResult result;
    size_t at = masked() ? 4 : 3;
    if (s_.return_sequences) {
      const ValueRef stacked = b_.Op("TensorListStack", {v[at++], ElementShape(b_, output_.shape)},
                                     {{"element_dtype", output_.dtype}});
      if (!b_.ok()) return {};
      SymShape whole{SizeAt(b_, s_.x, 1)};
      for (const Dim dim : output_.shape.dims()) whole.push_back(dim);
      b_.Refine(stacked, whole);
      result.output = TimeMajor(b_, stacked, false);
      at += keeps_output() ? 1 : 0;
    } else {
      result.output = v[at++];
    }
    result.states.assign(v.begin() + static_cast<int64_t>(at), v.end());
    return result;
  }

  GraphBuilder& b_;
  Cell& cell_;
  const Sequence& s_;
  SymShape step_shape_, mask_shape_;
  TensorType output_;
};

}  // namespace

SequenceResult RunSequence(GraphBuilder& b, Cell& cell, const Sequence& sequence) {
  return Loop(b, cell, sequence).Run();
}

RecurrentOptions OptionsOf(LayerContext& c, const Json& config) {
  Config options = c.Nested(config, "a layer in it");
  options.Ignore({"cell"});  // which CellOf reads
  // Requests of a server are not one after the other: each begins with a state of zeros.
  options.Ignore({"stateful"});
  if (options.Bool("time_major", false)) c.Fail("time_major=True is not supported");
  const RecurrentOptions read{
      options.Bool("go_backwards", false), options.Bool("zero_output_for_mask", false),
      options.Bool("return_sequences", false), options.Bool("return_state", false)};
  c.b.Fail(options.status());
  return read;
}

std::vector<ValueRef> InitialStates(LayerContext& c) {
  std::vector<ValueRef> states;
  const KValue& given = c.Arg(1, "initial_state");
  if (given.kind == KValue::Kind::kJson && !HasOnlyNulls(*given.json))
    c.Fail("an initial state that is constant");
  for (const KTensor& state : Flatten(given)) states.push_back(state.value);
  if (!states.empty()) return states;
  const std::vector<KTensor> inputs = c.Inputs();
  for (size_t k = 1; k < inputs.size(); ++k) states.push_back(inputs[k].value);
  return states;
}

KValue RunRecurrent(LayerContext& c, Cell& cell, const RecurrentOptions& options,
                    std::vector<ValueRef> initial) {
  GraphBuilder& b = c.b;
  Sequence s;
  s.x = cell.Project(b, c.In());
  s.mask = c.Mask();
  s.states = initial.empty() ? cell.ZeroStates(b, s.x) : std::move(initial);
  s.backwards = options.backwards;
  s.zero_output_for_mask = options.zero_output_for_mask;
  s.return_sequences = options.return_sequences;
  if (!b.ok()) return {};
  const SequenceResult result = RunSequence(b, cell, s);
  KTensor out{result.output, {}};
  if (options.return_sequences) out.mask = s.mask;
  if (!options.return_state) return out;
  std::vector<KValue> all{out};
  for (const ValueRef& state : result.states) all.emplace_back(state);
  return all;
}

}  // namespace floe::keras
