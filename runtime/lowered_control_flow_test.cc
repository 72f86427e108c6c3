// Conditionals as TensorFlow's lowering writes them (Switch, Merge, pivots and control edges), and
// v1 loops in loops, from end to end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/import/import.h"
#include "runtime/exec_context.h"
#include "runtime/model.h"
#include "runtime/test_graph.h"

namespace floe {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Lowered {
 public:
  Lowered() {
    x = t.Input("x", DType::kFloat32, SymShape());
    p = t.Input("p", DType::kBool, SymShape());
    q = t.Input("q", DType::kBool, SymShape());
  }
  // The pivot of one side of a predicate.
  int Pivot(const std::string& name, ValueRef predicate, bool side) {
    const ValueRef both = t.Op("Switch", name + "/switch", {predicate, predicate});
    t.graph.mutable_node(both.node).num_outputs = 2;
    return t.Op("Identity", name, {{both.node, side ? 1 : 0}}).node;
  }
  // A constant of a branch, behind an Identity as functions' results are.
  ValueRef Constant(const std::string& name, float value, int pivot) {
    const ValueRef constant = t.Const(name, Tensor::Scalar(DType::kFloat32, value));
    t.graph.mutable_node(constant.node).control_inputs = {pivot};
    return t.Op("Identity", name + "/out", {constant});
  }
  ValueRef Merge(const std::string& name, ValueRef off, ValueRef on,
                 std::vector<int> controls = {}) {
    const ValueRef merge = t.Op("Merge", name, {on, off}, {}, std::move(controls));
    t.graph.mutable_node(merge.node).num_outputs = 2;
    return merge;
  }
  absl::StatusOr<float> Run(float x_value, bool p_value, bool q_value = false) {
    FLOE_ASSIGN_OR_RETURN(const auto compiled,
                          CompiledSignature::Compile(t.graph, t.signature, {}));
    FLOE_ASSIGN_OR_RETURN(const auto plan, compiled->Bind({Shape(), Shape(), Shape()}));
    ExecContext context;
    FLOE_RETURN_IF_ERROR(context.Prepare(plan, 1));
    context.BindInput(0, &x_value);
    context.BindInput(1, &p_value);
    context.BindInput(2, &q_value);
    FLOE_RETURN_IF_ERROR(context.Run());
    return *context.Output(0).as<float>();
  }
  float Value(float x_value, bool p_value, bool q_value = false) {
    const auto value = Run(x_value, p_value, q_value);
    EXPECT_TRUE(value.ok()) << value.status();
    return value.value_or(0);
  }

  TestGraph t;
  ValueRef x, p, q;
};

TEST(LoweredConditional, BothBranchesAreConstants) {
  Lowered g;
  const ValueRef on = g.Constant("on", 3, g.Pivot("t", g.p, true)),
                 off = g.Constant("off", 5, g.Pivot("f", g.p, false));
  g.t.Output(g.t.Op("Add", "sum", {g.Merge("merge", off, on), g.x}));
  EXPECT_EQ(g.Value(10, true), 13);
  EXPECT_EQ(g.Value(10, false), 15);
}

// The index of the input that lives, whichever order the Merge names them in.
TEST(LoweredConditional, AMergeTellsWhichInputItTook) {
  Lowered g;
  const ValueRef on = g.Constant("on", 3, g.Pivot("t", g.p, true)),
                 off = g.Constant("off", 5, g.Pivot("f", g.p, false));
  const ValueRef merge = g.Merge("merge", off, on);  // its inputs are on, off
  const ValueRef index = g.t.Op("Cast", "index", {{merge.node, 1}},
                                {{"SrcT", DType::kInt32}, {"DstT", DType::kFloat32}});
  g.t.Output(g.t.Op("Add", "sum", {index, g.x}));
  EXPECT_EQ(g.Value(10, true), 10);
  EXPECT_EQ(g.Value(10, false), 11);
}

TEST(LoweredConditional, MoreThanTwoValuesAreRefusedByName) {
  Lowered g;
  const int on = g.Pivot("t", g.p, true), off = g.Pivot("f", g.p, false);
  const ValueRef joined = g.t.Op(
      "Merge", "three", {g.Constant("a", 1, on), g.Constant("b", 2, off), g.Constant("c", 3, on)});
  g.t.Output(g.t.Op("Add", "sum", {joined, g.x}));
  EXPECT_THAT(std::string(g.Run(10, true).status().message()),
              AllOf(HasSubstr("'three'"), HasSubstr("3 inputs")));
}

TEST(LoweredConditional, AKnownShapeStaysInItsBranch) {
  Lowered g;
  const ValueRef data = g.t.Op("Switch", "data", {g.x, g.p});
  g.t.graph.mutable_node(data.node).num_outputs = 2;
  const auto rank = [&](const std::string& name, int side) {
    return g.t.Op("Cast", name + "/cast", {g.t.Op("Rank", name, {{data.node, side}})},
                  {{"SrcT", DType::kInt32}, {"DstT", DType::kFloat32}});
  };
  g.t.Output(g.t.Op("Add", "sum", {g.Merge("merge", rank("r0", 0), rank("r1", 1)), g.x}));
  EXPECT_EQ(g.Value(10, true), 10);
  EXPECT_EQ(g.Value(11, false), 11);
}

TEST(LoweredConditional, AnInnerOneThatReadsNothingOfTheOuterBranch) {
  Lowered g;
  const int outer = g.Pivot("t", g.p, true);
  const int inner_on = g.Pivot("it", g.q, true), inner_off = g.Pivot("if", g.q, false);
  for (const int pivot : {inner_on, inner_off})
    g.t.graph.mutable_node(pivot).control_inputs = {outer};
  const ValueRef inner =
      g.Merge("inner", g.Constant("b", 2, inner_off), g.Constant("a", 1, inner_on));
  const ValueRef off = g.Constant("off", 5, g.Pivot("f", g.p, false));
  g.t.Output(g.t.Op("Add", "sum", {g.Merge("merge", off, inner), g.x}));
  EXPECT_EQ(g.Value(10, true, true), 11);
  EXPECT_EQ(g.Value(10, true, false), 12);
  EXPECT_EQ(g.Value(10, false, true), 15);
}

TEST(LoweredConditional, AnAssertThatOnlyAMergeWaitsFor) {
  Lowered g;
  const int on = g.Pivot("t", g.p, true), off = g.Pivot("f", g.p, false);
  const ValueRef data = g.t.Op("Switch", "data", {g.p, g.p});
  g.t.graph.mutable_node(data.node).num_outputs = 2;
  const ValueRef text = g.t.Const("text", Tensor::Allocate(DType::kString, Shape()));
  const ValueRef check = g.t.Op("Assert", "check", {{data.node, 0}, text}, {}, {off});
  const ValueRef executed = g.Merge("executed", {off, 0}, {on, 0}, {check.node});
  g.t.Output(g.t.Op("Identity", "y", {g.x}, {}, {executed.node}));
  EXPECT_EQ(g.Value(10, true), 10);
  EXPECT_THAT(std::string(g.Run(10, false).status().message()), HasSubstr("check"));
}

// One variable of a v1 loop: Enter, Merge, Switch, NextIteration and Exit.
std::string Variable(const std::string& frame, const std::string& name, const std::string& from,
                     const std::string& next) {
  const std::string id = frame + "/" + name;
  return "node { name: '" + id + "' op: 'Enter' input: '" + from +
         "' attr { key: 'frame_name' value { s: '" + frame + "' } } }\n" +  //
         "node { name: '" + id + "/Merge' op: 'Merge' input: '" + id + "' input: '" + id +
         "/Next' attr { key: 'N' value { i: 2 } } }\n" +  //
         "node { name: '" + id + "/Switch' op: 'Switch' input: '" + id + "/Merge' input: '" +
         frame + "/cond' }\n" +  //
         "node { name: '" + id + "/Next' op: 'NextIteration' input: '" + next + "' }\n" +
         "node { name: '" + id + "/Exit' op: 'Exit' input: '" + id + "/Switch' }\n";
}
std::string IntNode(const std::string& name, int value, const std::string& control) {
  return "node { name: '" + name + "' op: 'Const' " +
         (control.empty() ? "" : "input: '^" + control + "' ") +
         "attr { key: 'dtype' value { type: DT_INT32 } } attr { key: 'value' value { tensor { "
         "dtype: DT_INT32 tensor_shape {} int_val: " +
         std::to_string(value) + " } } } }\n";
}
std::string Binary(const std::string& name, const std::string& op, const std::string& a,
                   const std::string& b) {
  return "node { name: '" + name + "' op: '" + op + "' input: '" + a + "' input: '" + b +
         "' attr { key: 'T' value { type: DT_INT32 } } }\n";
}

// for (i = 0; i < n; ++i) for (j = 0; j < i; ++j) a += 2
TEST(LoweredLoop, TheResultOfAnInnerLoopIsTheNextValueOfTheOuter) {
  const std::string text =
      "node { name: 'n' op: 'Placeholder' attr { key: 'dtype' value { type: DT_INT32 } } attr { "
      "key: 'shape' value { shape {} } } }\n" +
      IntNode("zero", 0, "") + Variable("out", "i", "zero", "out/add") +
      Variable("out", "a", "zero", "in/a/Exit") +
      "node { name: 'out/n' op: 'Enter' input: 'n' attr { key: 'frame_name' value { s: 'out' } } "
      "attr { key: 'is_constant' value { b: true } } }\n" +
      Binary("out/less", "Less", "out/i/Merge", "out/n") +
      "node { name: 'out/cond' op: 'LoopCond' input: 'out/less' }\n" +
      IntNode("out/one", 1, "out/i/Switch") +
      Binary("out/add", "AddV2", "out/i/Switch:1", "out/one") +
      IntNode("in/zero", 0, "out/i/Switch") + Variable("in", "j", "in/zero", "in/add") +
      Variable("in", "a", "out/a/Switch:1", "in/more") +
      "node { name: 'in/i' op: 'Enter' input: 'out/i/Switch:1' attr { key: 'frame_name' value { s: "
      "'in' } } attr { key: 'is_constant' value { b: true } } }\n" +
      Binary("in/less", "Less", "in/j/Merge", "in/i") +
      "node { name: 'in/cond' op: 'LoopCond' input: 'in/less' }\n" +
      IntNode("in/one", 1, "in/j/Switch") + IntNode("in/two", 2, "in/j/Switch") +
      Binary("in/add", "AddV2", "in/j/Switch:1", "in/one") +
      Binary("in/more", "AddV2", "in/a/Switch:1", "in/two") +
      "node { name: 'y' op: 'Identity' input: 'out/a/Exit' }\n";
  ImportOptions options;
  options.fetches = {"y"};
  auto imported = ImportBytes(text, options);
  ASSERT_TRUE(imported.ok()) << imported.status();
  const auto model =
      Model::Create({{}, std::move(imported->graph), std::move(imported->signatures)}, {});
  ASSERT_TRUE(model.ok()) << model.status();
  const auto plan = (*model)->Find("")->default_variant().Bind({Shape()});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ExecContext context;
  ASSERT_TRUE(context.Prepare(*plan, 1).ok());
  for (const int n : {0, 1, 4}) {
    context.BindInput(0, &n);
    ASSERT_TRUE(context.Run().ok());
    EXPECT_EQ(*context.Output(0).as<int32_t>(), n * (n - 1)) << n;
  }
}

}  // namespace
}  // namespace floe
