#include <gtest/gtest.h>

#include <functional>

#include "base/rounds_for_test.h"
#include "runtime/passes/loop_test_graph.h"
#include "runtime/passes/passes.h"

namespace floe {
namespace {

constexpr int64_t kBatch = 3, kTime = 5, kIn = 4, kUnits = 6;

// What a test changes in a layer's loop.
struct Options {
  std::string cell = "LSTM";
  std::string gate = "Sigmoid", value = "Tanh";
  bool last_only = false;  // one element in the list of outputs
  bool open_length = false;
  bool backwards = false;
  bool use_state = false;    // the final states are fetched too
  bool masked = false;       // with a variable for the output before
  bool zero_output = false;  // where masked
  bool zero_state = false;   // at first
  bool arrays = false;       // TensorArrays, not lists
  int64_t steps = kTime, reserved = kTime, counter_step = 1, first = 0;
  std::string compare = "Less";
  // Changes to the body, by name: see Body.
  std::string change;
};

// The loop that Keras writes: time, steps, the list of inputs, the list of outputs, states.
class Layer {
 public:
  explicit Layer(Options options) : o_(std::move(options)) {
    for (TestGraph* g : {&condition_, &body_}) Variables(*g);
    condition_.Output(condition_.Op(o_.compare, "less", {{0, 0}, {1, 0}}));
    Body();
    Caller();
  }

  TestGraph t;

  std::vector<Tensor> Inputs() const {
    Tensor mask = Tensor::Allocate(DType::kBool, Shape({kBatch, kTime}));
    for (int64_t i = 0; i < mask.elements(); ++i)
      static_cast<bool*>(mask.mutable_data())[i] = i >= kTime && i % 3 != 0;
    return {Wavy(Shape({kBatch, kTime, kIn}), 1), Wavy(Shape({kBatch, kUnits}), 2),
            Wavy(Shape({kBatch, kUnits}), 3), mask};
  }

 private:
  bool lstm() const { return o_.cell == "LSTM"; }
  bool Has(const std::string& change) const { return o_.change == change; }

  void Variables(TestGraph& g) const {
    g.Input("time", DType::kInt32, {});
    g.Input("steps", DType::kInt32, {});
    g.Input("list", o_.arrays ? DType::kFloat32 : DType::kVariant, {});
    g.Input("out", o_.arrays ? DType::kFloat32 : DType::kVariant, {});
    g.Input("h", DType::kFloat32, SymShape::UnknownRank());
    if (lstm()) g.Input("c", DType::kFloat32, SymShape::UnknownRank());
    if (o_.arrays) {
      g.Input("in_handle", DType::kResource, {});
      g.Input("out_handle", DType::kResource, {});
    }
    if (!o_.masked) return;
    g.Input("masks", DType::kVariant, {});
    g.Input("before", DType::kFloat32, SymShape::UnknownRank());
  }

  int64_t columns() const { return lstm() ? 4 : o_.cell == "SimpleRNN" ? 1 : 3; }
  // Small, so that sequences do not grow whatever the function.
  ValueRef Weights(const std::string& name, int64_t rows, int64_t gates, float seed) {
    Tensor weights = Wavy(Shape({rows, gates * kUnits}), seed);
    for (int64_t i = 0; i < weights.elements(); ++i)
      static_cast<float*>(weights.mutable_data())[i] *= 0.2f;
    return body_.Const(name, weights);
  }
  ValueRef Apply(const std::string& function, const std::string& name, ValueRef x) {
    if (function == "Linear") return x;
    if (function == "Swish") {
      const ValueRef product = Op("Mul", name, {x, Op("Sigmoid", name + "/sigmoid", {x})});
      return Op("IdentityN", name + "/same", {product});
    }
    if (function == "Relu6/6") {
      const ValueRef shifted =
          Op("Add", name + "/3", {x, body_.Floats(name + "/c3", Shape(), {3})});
      return Op(
          "RealDiv", name,
          {Op("Relu6", name + "/relu6", {shifted}), body_.Floats(name + "/c6", Shape(), {6})});
    }
    if (function != "HardSigmoid") return body_.Op(function, name, {x});
    const ValueRef y = body_.Op(
        "Add", name + "/shifted",
        {body_.Op("Mul", name + "/scaled", {x, body_.Floats(name + "/scale", Shape(), {0.2f})}),
         body_.Floats(name + "/shift", Shape(), {0.5f})});
    return body_.Op(
        "ClipByValue", name,
        {y, body_.Floats(name + "/low", Shape(), {0}), body_.Floats(name + "/high", Shape(), {1})});
  }
  std::vector<ValueRef> Split(const std::string& name, ValueRef x, int count) {
    const ValueRef axis = body_.Int(name + "/axis", Has("split along rows") ? 0 : 1);
    const ValueRef split =
        body_.Op("Split", name, {axis, x}, {{"num_split", static_cast<int64_t>(count)}});
    body_.graph.mutable_node(split.node).num_outputs = count;
    std::vector<ValueRef> parts;
    parts.reserve(count);
    for (int k = 0; k < count; ++k) parts.push_back({split.node, k});
    return parts;
  }
  ValueRef Op(const std::string& op, const std::string& name, std::vector<ValueRef> in) {
    return body_.Op(op, name, std::move(in));
  }

  void Body() {
    const ValueRef time{0, 0}, h{4, 0};
    const ValueRef shape = body_.Ints("item_shape", {-1, kIn});
    ValueRef at = time;
    if (Has("reads the first step")) at = body_.Int("zero", 0);
    const int handle = lstm() ? 6 : 5;
    const ValueRef x = o_.arrays ? body_.Op("TensorArrayReadV3", "x", {{handle, 0}, at, {2, 0}},
                                            {{"dtype", DType::kFloat32}})
                                 : body_.Op("TensorListGetItem", "x", {{2, 0}, at, shape},
                                            {{"element_dtype", DType::kFloat32}});
    std::vector<ValueRef> states;
    if (lstm()) {
      states = Lstm(x, h, {5, 0});
    } else if (o_.cell == "SimpleRNN") {
      states = {Apply(o_.value, "h_next",
                      Op("Add", "sum",
                         {Biased("xw", Op("MatMul", "xW", {x, Weights("W", kIn, 1, 4)})),
                          Op("MatMul", "hR", {h, Weights("R", kUnits, 1, 5)})}))};
    } else {
      states = {Gru(x, h)};
    }
    ValueRef index = time;
    if (o_.last_only) index = body_.Int("first", 0);
    ValueRef written = Has("writes another value") ? Op("Neg", "minus", {states[0]}) : states[0];
    if (o_.masked) Mask(time, &written, &states);
    body_.Output(
        Op("Add", "next", {time, body_.Int("one", static_cast<int32_t>(o_.counter_step))}));
    body_.Output({1, 0});
    body_.Output({2, 0});
    body_.Output(o_.arrays
                     ? Op("TensorArrayWriteV3", "write", {{handle + 1, 0}, index, written, {3, 0}})
                     : body_.Op("TensorListSetItem", "write", {{3, 0}, index, written},
                                {{"element_dtype", DType::kFloat32}}));
    if (Has("exchanges its states")) std::swap(states[0], states[1]);
    for (const ValueRef& state : states) body_.Output(state);
    for (int k : {0, 1}) {
      if (o_.arrays) body_.Output({handle + k, 0});
    }
    if (!o_.masked) return;
    body_.Output({lstm() ? 6 : 5, 0});
    body_.Output(written);
  }

  // Rows that do not see the step keep their states.
  void Mask(ValueRef time, ValueRef* written, std::vector<ValueRef>* states) {
    const int masks = lstm() ? 6 : 5;
    const ValueRef mask =
        body_.Op("TensorListGetItem", "mask", {{masks, 0}, time, body_.Ints("mask_shape", {-1})},
                 {{"element_dtype", DType::kBool}});
    ValueRef column = Op("ExpandDims", "column", {mask, body_.Int("column/axis", 1)});
    if (Has("the mask is turned round")) column = Op("LogicalNot", "not", {column});
    const ValueRef otherwise =
        o_.zero_output ? body_.Floats("nothing", Shape(), {Has("one, not zero") ? 1.0f : 0.0f})
                       : ValueRef{masks + 1, 0};
    *written = Op("SelectV2", "written", {column, *written, otherwise});
    for (size_t k = 0; k < states->size(); ++k) {
      if (k == 1 && Has("c is not kept")) continue;
      const int other = Has("another state is kept") && k == 1 ? 4 : 4 + static_cast<int>(k);
      (*states)[k] =
          Op("SelectV2", "state" + std::to_string(k), {column, (*states)[k], {other, 0}});
    }
  }

  ValueRef Biased(const std::string& name, ValueRef x) {
    return Op("BiasAdd", name + "/biased",
              {x, body_.Const(name + "/b", Wavy(Shape({columns() * kUnits}), 6))});
  }

  std::vector<ValueRef> Lstm(ValueRef x, ValueRef h, ValueRef c) {
    const ValueRef other = Has("R of another value") ? c : h;
    if (Has("W of another value")) x = Op("Neg", "negative", {x});
    const ValueRef z = Biased("z", Op("Add", "sum",
                                      {Op("MatMul", "xW", {x, Weights("W", kIn, 4, 4)}),
                                       Op("MatMul", "hR", {other, Weights("R", kUnits, 4, 5)})}));
    const auto gates = Split("gates", z, 4);
    const bool exchanged = Has("gates in another order");
    const ValueRef in = Apply(o_.gate, "i", gates[exchanged ? 3 : 0]),
                   forget = Apply(o_.gate, "f", gates[1]), fresh = Apply(o_.value, "g", gates[2]),
                   out = Apply(o_.gate, "o", gates[exchanged ? 0 : 3]);
    ValueRef kept = Op("Mul", "kept", {forget, c});
    if (Has("peephole")) kept = Op("Mul", "kept_more", {kept, c});
    const ValueRef added = Op("Mul", "added", {in, fresh});
    const ValueRef c_next = Op(Has("c is a difference") ? "Sub" : "Add", "c_next", {kept, added});
    const ValueRef shown = Apply(o_.value, "shown", Has("h of the old c") ? c : c_next);
    return {Op("Mul", "h_next", {out, shown}), c_next};
  }

  ValueRef Gru(ValueRef x, ValueRef h) {
    const bool after = o_.cell == "GRU";
    const auto xs = Split("xs", Biased("x", Op("MatMul", "xW", {x, Weights("W", kIn, 3, 4)})), 3);
    std::vector<ValueRef> hs;
    if (after)
      hs = Split("hs", Biased("h", Op("MatMul", "hR", {h, Weights("R", kUnits, 3, 5)})), 3);
    for (int g = 0; !after && g < 2; ++g) {
      const std::string name = "hR" + std::to_string(g);
      hs.push_back(Op("MatMul", name, {h, Weights(name + "/R", kUnits, 1, 5.0f + g)}));
    }
    const ValueRef z = Apply(o_.gate, "z", Op("Add", "z/sum", {xs[0], hs[0]})),
                   r = Apply(o_.gate, "r", Op("Add", "r/sum", {xs[1], hs[1]}));
    ValueRef inner;
    if (after) {
      inner = Op("Mul", "rh", {r, hs[2]});
    } else {
      inner = Op("MatMul", "rhR", {Op("Mul", "rh", {r, h}), Weights("Rn", kUnits, 1, 8)});
    }
    const ValueRef n = Apply(o_.value, "n", Op("Add", "n/sum", {xs[2], inner}));
    const ValueRef one = body_.Floats("1", Shape(), {Has("two minus z") ? 2.0f : 1.0f});
    const ValueRef rest = Op("Sub", "rest", {one, Has("one minus r") ? r : z});
    return Op("Add", "h_next", {Op("Mul", "zh", {z, h}), Op("Mul", "rest_n", {rest, n})});
  }

  void Caller() {
    const ValueRef x =
        t.Input("x", DType::kFloat32,
                SymShape{Dim::Unknown(), o_.open_length ? Dim::Unknown() : Dim(kTime), kIn});
    ValueRef h = t.Input("h", DType::kFloat32, SymShape{Dim::Unknown(), kUnits});
    const ValueRef c = t.Input("c", DType::kFloat32, SymShape{Dim::Unknown(), kUnits});
    ValueRef steps_first = t.Op("Transpose", "time_first", {x, t.Ints("perm", {1, 0, 2})});
    ValueRef steps = t.Int("steps", static_cast<int32_t>(o_.steps)),
             reserved = t.Int("reserved", static_cast<int32_t>(o_.reserved));
    if (o_.open_length) {
      const ValueRef shape = t.Op("Shape", "shape", {steps_first}, {{"out_type", DType::kInt32}});
      steps = reserved =
          t.Op("StridedSlice", "length",
               {shape, t.Ints("from", {Has("length of the batch") ? 1 : 0}),
                t.Ints("to", {Has("length of the batch") ? 2 : 1}), t.Ints("step", {1})},
               {{"shrink_axis_mask", int64_t{1}}});
    }
    const ValueRef mask = t.Input("mask", DType::kBool, SymShape{Dim::Unknown(), Dim::Unknown()});
    ValueRef mask_first = t.Op("Transpose", "mask_first", {mask, t.Ints("mask_perm", {1, 0})});
    if (o_.backwards) {
      const ValueRef axis = t.Ints("turned/axis", {0});
      steps_first = t.Op("ReverseV2", "turned", {steps_first, axis});
      if (!Has("only the sequence is turned"))
        mask_first = t.Op("ReverseV2", "mask_turned", {mask_first, axis});
    }
    if (o_.zero_state) h = t.Op("ZerosLike", "h_zero", {h});
    if (o_.last_only) reserved = t.Int("one", 1);
    if (o_.arrays) return Arrays(steps_first, steps, h, c);
    const ValueRef list =
        t.Op("TensorListFromTensor", "list", {steps_first, t.Ints("in_shape", {-1, kIn})},
             {{"element_dtype", DType::kFloat32}});
    const ValueRef out =
        t.Op("TensorListReserve", "out", {t.Ints("out_shape", {-1, kUnits}), reserved},
             {{"element_dtype", DType::kFloat32}});
    std::vector<ValueRef> variables = {t.Int("zero", static_cast<int32_t>(o_.first)), steps, list,
                                       out, h};
    if (lstm()) variables.push_back(c);
    if (o_.masked) {
      variables.push_back(t.Op("TensorListFromTensor", "masks",
                               {mask_first, t.Ints("masks_shape", {-1})},
                               {{"element_dtype", DType::kBool}}));
      variables.push_back(Has("an output before the first") ? h : t.Op("ZerosLike", "none", {h}));
    }
    const auto count = static_cast<int>(variables.size());
    const ValueRef loop = Control(t, "While", variables, count, {&condition_, &body_});
    const ValueRef stack =
        t.Op("TensorListStack", "stack", {{loop.node, 3}, t.Ints("stack_shape", {-1, kUnits})},
             {{"element_dtype", DType::kFloat32}});
    t.Output(t.Op("Transpose", "rows_first", {stack, t.Ints("back", {1, 0, 2})}));
    if (o_.use_state) {
      for (int k = 4; k < count; ++k)
        if (!o_.masked || k != count - 2)
          t.Output(t.Op("Neg", "state" + std::to_string(k), {{loop.node, k}}));
      t.Output(t.Op("Neg", "counted", {{loop.node, 0}}));
    }
    if (Has("the list is read twice"))
      t.Output(t.Op("TensorListLength", "list_length", {{loop.node, 3}}));
  }

  // The same with TensorArrays, of a known length.
  void Arrays(ValueRef steps_first, ValueRef steps, ValueRef h, ValueRef c) {
    const auto array = [&](const std::string& name) {
      const ValueRef made = t.Op("TensorArrayV3", name, {t.Int(name + "/size", kTime)},
                                 {{"dtype", DType::kFloat32}, {"clear_after_read", false}});
      t.graph.mutable_node(made.node).num_outputs = 2;
      return made.node;
    };
    const int in = array("in"), out = array("out");
    const ValueRef order =
        Has("filled from its end")
            ? t.Ints("order", {4, 3, 2, 1, 0})
            : t.Op("Range", "order",
                   {t.Int("order/from", 0), t.Int("order/to", kTime), t.Int("order/by", 1)});
    const ValueRef filled =
        t.Op("TensorArrayScatterV3", "filled", {{in, 0}, order, steps_first, {in, 1}});
    std::vector<ValueRef> variables = {t.Int("zero", 0), steps, filled, {out, 1}, h};
    if (lstm()) variables.push_back(c);
    const auto states = static_cast<int>(variables.size());
    variables.push_back({in, 0});
    variables.push_back({out, 0});
    const ValueRef loop =
        Control(t, "While", variables, static_cast<int>(variables.size()), {&condition_, &body_});
    const ValueRef flow{loop.node, 3};
    const ValueRef size = t.Op("TensorArraySizeV3", "size", {{out, 0}, flow});
    const ValueRef all =
        Has("gathers some")
            ? t.Ints("all", {0, 1, 3})
            : t.Op("Range", "all", {t.Int("all/from", 0), size, t.Int("all/by", 1)});
    const ValueRef stack =
        t.Op("TensorArrayGatherV3", "stack", {{out, 0}, all, flow}, {{"dtype", DType::kFloat32}});
    t.Output(t.Op("Transpose", "rows_first", {stack, t.Ints("back", {1, 0, 2})}));
    for (int k = 4; o_.use_state && k < states; ++k)
      t.Output(t.Op("Neg", "state" + std::to_string(k), {{loop.node, k}}));
    if (Has("the last element is read"))
      t.Output(t.Op("TensorArrayReadV3", "last",
                    {{out, 0}, t.Op("Sub", "at", {{loop.node, 0}, t.Int("at/one", 1)}), flow},
                    {{"dtype", DType::kFloat32}}));
    if (Has("an element is read afterwards"))
      t.Output(t.Op("TensorArrayReadV3", "element", {{out, 0}, t.Int("element/at", 1), flow},
                    {{"dtype", DType::kFloat32}}));
  }

  const Options o_;
  TestGraph condition_, body_;
};

// With the pass and without it; `fused` says whether the loop goes.
void ExpectSameLoop(const Options& options, bool fused) {
  Layer layer(options);
  Graph graph = layer.t.graph;
  SpecializeSubgraphs(&graph);
  const absl::Status status = FuseRecurrent(&graph, layer.t.InputTypes(), {});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(CountOps(graph, "FusedRecurrent"), fused ? 1 : 0) << DebugString(graph);
  EXPECT_EQ(CountOps(graph, "While"), fused ? 0 : 1);
  const auto got = RunGraph(layer.t, layer.Inputs()),
             want = RunGraph(layer.t, layer.Inputs(), {"fuse_recurrent"});
  ASSERT_FALSE(want.empty());
  ASSERT_EQ(got.size(), want.size());
  for (size_t k = 0; k < want.size(); ++k) {
    if (want[k].dtype() == DType::kFloat32) {
      ExpectClose(got[k], want[k], 3e-6);
    } else {
      ExpectSameBits(got[k], want[k]);
    }
  }
}

const char* const kCells[] = {"LSTM", "GRU", "GRU reset before", "SimpleRNN"};

TEST(FuseRecurrent, EveryCell) {
  for (const char* cell : kCells) {
    for (int flags = 0; flags < 16; ++flags) {
      Options o;
      o.cell = cell;
      o.last_only = (flags & 1) != 0;
      o.open_length = (flags & 2) != 0 && !o.last_only;
      o.backwards = (flags & 4) != 0;
      o.use_state = (flags & 8) != 0 && !o.open_length;
      SCOPED_TRACE(absl::StrCat(cell, " ", flags));
      ExpectSameLoop(o, true);
    }
  }
}

TEST(FuseRecurrent, EveryFunction) {
  for (const char* cell : kCells) {
    for (const char* function :
         {"Linear", "Relu", "Relu6", "Elu", "Selu", "LeakyRelu", "Softplus", "Softsign", "Tanh",
          "Sigmoid", "HardSigmoid", "Swish", "Relu6/6"}) {
      SCOPED_TRACE(absl::StrCat(cell, " ", function));
      Options o;
      o.cell = cell;
      o.value = function;
      ExpectSameLoop(o, true);
      o.value = "Tanh";
      o.gate = function;
      if (o.gate != "Linear") ExpectSameLoop(o, true);
    }
  }
}

TEST(FuseRecurrent, TensorArrays) {
  for (const char* cell : kCells) {
    for (int flags = 0; flags < 4; ++flags) {
      Options o;
      o.cell = cell;
      o.arrays = true;
      o.backwards = (flags & 1) != 0;
      o.use_state = (flags & 2) != 0;
      o.change = o.backwards ? "the last element is read" : "";
      SCOPED_TRACE(absl::StrCat(cell, " ", flags));
      ExpectSameLoop(o, true);
    }
  }
  for (const char* change :
       {"filled from its end", "gathers some", "an element is read afterwards"}) {
    SCOPED_TRACE(change);
    Options o;
    o.arrays = true;
    o.change = change;
    ExpectSameLoop(o, false);
  }
}

TEST(FuseRecurrent, Masks) {
  for (const char* cell : kCells) {
    for (int i = 0; i < Rounds(32); ++i) {
      const int flags = (9 * i + 31) % 32;  // each once
      Options o;
      o.cell = cell;
      o.masked = true;
      o.last_only = (flags & 1) != 0;
      o.zero_output = (flags & 2) != 0;
      o.backwards = (flags & 4) != 0;
      o.use_state = (flags & 8) != 0;
      o.zero_state = (flags & 16) != 0;
      SCOPED_TRACE(absl::StrCat(cell, " masked ", flags));
      ExpectSameLoop(o, true);
    }
  }
}

TEST(FuseRecurrent, OtherMasksStayInTheLoop) {
  for (const char* change :
       {"the mask is turned round", "another state is kept", "c is not kept",
        "an output before the first", "only the sequence is turned", "one, not zero"}) {
    SCOPED_TRACE(change);
    Options o;
    o.masked = true;
    o.change = change;
    o.backwards = o.change == "only the sequence is turned";
    o.zero_output = o.change == "one, not zero";
    ExpectSameLoop(o, false);
  }
}

TEST(FuseRecurrent, FewerStepsThanTheSequenceHas) {
  Options o;
  o.steps = o.reserved = kTime - 2;
  ExpectSameLoop(o, true);
  o.backwards = true;
  ExpectSameLoop(o, true);
}

TEST(FuseRecurrent, GatesInAnyOrder) {
  Options o;
  o.change = "gates in another order";
  ExpectSameLoop(o, true);
}

TEST(FuseRecurrent, WhatIsNotQuiteALayerStaysALoop) {
  std::vector<Options> misses;
  const auto lstm = [&](const std::string& change) {
    misses.emplace_back();
    misses.back().change = change;
    return &misses.back();
  };
  for (const char* change :
       {"reads the first step", "writes another value", "peephole", "c is a difference",
        "h of the old c", "R of another value", "W of another value", "the list is read twice",
        "exchanges its states"})
    lstm(change);
  lstm("a list that is longer")->reserved = kTime + 1;
  for (const char* change : {"two minus z", "one minus r"}) lstm(change)->cell = "GRU";
  for (const char* change : {"two minus z", "one minus r"}) lstm(change)->cell = "GRU reset before";
  lstm("a function that is none")->value = "Sin";
  lstm("a gate that is none")->gate = "Cos";
  lstm("a function that is none")->cell = "SimpleRNN";
  misses.back().value = "Sin";
  for (const Options& o : misses) {
    SCOPED_TRACE(absl::StrCat(o.cell, ": ", o.change));
    ExpectSameLoop(o, false);
  }
}

// Loops that fail or give something else when they run: only that they are left alone.
TEST(FuseRecurrent, LoopsOfAnotherLengthStay) {
  std::vector<Options> misses(6);
  misses[0].counter_step = 2;
  misses[1].compare = "LessEqual";
  misses[2].first = 1;
  misses[3].steps = misses[3].reserved = kTime + 1;
  misses[4].open_length = true;
  misses[4].change = "length of the batch";
  misses[5].steps = 0;
  for (const Options& o : misses) {
    Layer layer(o);
    Graph graph = layer.t.graph;
    SpecializeSubgraphs(&graph);
    ASSERT_TRUE(FuseRecurrent(&graph, layer.t.InputTypes(), {}).ok());
    EXPECT_EQ(CountOps(graph, "While"), 1);
  }
}

}  // namespace
}  // namespace floe
