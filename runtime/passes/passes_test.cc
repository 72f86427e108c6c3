#include "runtime/passes/passes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/test_graph.h"

namespace floe {
namespace {

using testing::HasSubstr;

const SymShape kRows4 = {Dim::Unknown(), 4};

TEST(Prune, DropsWhatNoOutputNeedsAndKeepsInputs) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, kRows4);
  t.Input("unused", DType::kFloat32, kRows4);
  t.Op("Relu", "dead", {x});
  t.Output(t.Op("Tanh", "y", {x}));
  Prune(&t.graph);
  EXPECT_EQ(t.graph.size(), 3);
  EXPECT_EQ(CountOps(t.graph, "Relu"), 0);
  EXPECT_EQ(t.graph.inputs.size(), 2u);
}

TEST(FoldConstants, ComputesWithTheKernels) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, kRows4);
  const ValueRef sum =
      t.Op("Add", "sum", {t.Floats("a", {4}, {1, 2, 3, 4}), t.Floats("b", {4}, {10, 20, 30, 40})});
  t.Output(t.Op("Mul", "y", {x, sum}));
  ASSERT_TRUE(FoldConstants(&t.graph, t.InputTypes(), {}).ok());
  Prune(&t.graph);
  EXPECT_EQ(CountOps(t.graph, "Add"), 0);
  const Node& y = t.graph.node(t.graph.outputs[0].node);
  const Tensor& folded = *t.graph.node(y.inputs[1].node).attrs.Find<Tensor>("value");
  EXPECT_EQ(folded.as<float>()[3], 44.f);
}

TEST(FoldConstants, AKnownInnerDimensionIsAConstant) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, kRows4);
  const ValueRef shape = t.Op("Shape", "shape", {x}, {{"out_type", DType::kInt32}});
  const ValueRef axis = t.Int("axis", 0);
  t.Output(t.Op("GatherV2", "inner", {shape, t.Int("one", 1), axis}));
  ASSERT_TRUE(FoldConstants(&t.graph, t.InputTypes(), {}).ok());
  // Only dim 1 is known; a gather of a partly known shape is left to the plan.
  EXPECT_EQ(CountOps(t.graph, "Shape"), 1);
}

// cond(predicate, x + 1, x * 2), with a constant of each branch tied to it by a control edge alone.
struct Cond {
  TestGraph t;
  explicit Cond(bool constant_predicate, bool value = false) {
    const ValueRef x = t.Input("x", DType::kFloat32, kRows4);
    const ValueRef p = constant_predicate ? t.Const("p", Tensor::Scalar(DType::kBool, value))
                                          : t.Input("p", DType::kBool, SymShape());
    const ValueRef pivot = t.Op("Switch", "pivot", {p, p});
    const ValueRef on = t.Op("Identity", "switch_t", {{pivot.node, 1}}),
                   off = t.Op("Identity", "switch_f", {{pivot.node, 0}});
    const ValueRef data = t.Op("Switch", "data", {x, p});
    const ValueRef one = t.Floats("one", {1}, {1}), two = t.Floats("two", {1}, {2});
    t.graph.mutable_node(one.node).control_inputs = {on.node};
    t.graph.mutable_node(two.node).control_inputs = {off.node};
    const ValueRef a = t.Op("Add", "a", {{data.node, 1}, one}),
                   b = t.Op("Mul", "b", {{data.node, 0}, two});
    t.Output(t.Op("Merge", "merge", {b, a}));
  }
};

TEST(FoldConstants, AConstantPredicateLeavesNoSwitch) {
  for (bool value : {false, true}) {
    Cond cond(true, value);
    ASSERT_TRUE(FoldConstants(&cond.t.graph, cond.t.InputTypes(), {}).ok());
    Prune(&cond.t.graph);
    EXPECT_EQ(CountOps(cond.t.graph, "Switch") + CountOps(cond.t.graph, "Merge"), 0);
    EXPECT_EQ(CountOps(cond.t.graph, "Add"), value ? 1 : 0);
    EXPECT_EQ(CountOps(cond.t.graph, "Mul"), value ? 0 : 1);
  }
}

TEST(FoldConstants, AnOutputInADeadBranchIsNamed) {
  Cond cond(true, false);
  cond.t.graph.outputs[0] = {cond.t.graph.size() - 3, 0};  // 'a', of the branch not taken
  const absl::Status status = FoldConstants(&cond.t.graph, cond.t.InputTypes(), {});
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("'a'"), HasSubstr("dead")));
}

TEST(StructureConditionals, SwitchAndMergeBecomeIf) {
  Cond cond(false);
  ASSERT_TRUE(StructureConditionals(&cond.t.graph).ok());
  EXPECT_EQ(CountOps(cond.t.graph, "Switch") + CountOps(cond.t.graph, "Merge"), 0);
  ASSERT_EQ(CountOps(cond.t.graph, "If"), 1);
  const Node& node = cond.t.graph.node(cond.t.graph.outputs[0].node);
  EXPECT_EQ(CountOps(*node.subgraphs[0], "Add"), 1);
  EXPECT_EQ(CountOps(*node.subgraphs[1], "Mul"), 1);
}

TEST(StructureConditionals, TwoMergesOfOnePredicateShareAnIfAndNestedOnesNest) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, kRows4),
                 p = t.Input("p", DType::kBool, SymShape()),
                 q = t.Input("q", DType::kBool, SymShape());
  const ValueRef outer = t.Op("Switch", "outer", {x, p}), q_in = t.Op("Switch", "q_in", {q, p});
  const ValueRef inner = t.Op("Switch", "inner", {{outer.node, 1}, {q_in.node, 1}});
  const ValueRef joined =
      t.Op("Merge", "joined",
           {t.Op("Relu", "r", {{inner.node, 0}}), t.Op("Tanh", "h", {{inner.node, 1}})});
  const ValueRef off = t.Op("Neg", "n", {{outer.node, 0}});
  t.Output(t.Op("Merge", "m1", {off, joined}));
  t.Output(t.Op("Merge", "m2", {t.Op("Abs", "abs", {{outer.node, 0}}), {outer.node, 1}}));
  ASSERT_TRUE(StructureConditionals(&t.graph).ok());
  ASSERT_EQ(CountOps(t.graph, "If"), 1);
  const Node& node = t.graph.node(t.graph.outputs[0].node);
  EXPECT_EQ(CountOps(*node.subgraphs[0], "If"), 1);
  EXPECT_EQ(CountOps(*node.subgraphs[1], "If"), 0);
  EXPECT_EQ(t.graph.outputs[1].node, t.graph.outputs[0].node);
}

TEST(StructureConditionals, WhatHasNoFormIsRefusedByName) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, kRows4),
                 p = t.Input("p", DType::kBool, SymShape());
  const ValueRef data = t.Op("Switch", "data", {x, p});
  t.Output(t.Op("Merge", "odd", {{data.node, 0}, x}));
  const absl::Status status = StructureConditionals(&t.graph);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), HasSubstr("'odd'"));
}

TEST(StructureConditionals, AFetchInsideABranchIsDead) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, kRows4),
                 p = t.Input("p", DType::kBool, SymShape());
  const ValueRef data = t.Op("Switch", "data", {x, p});
  t.Output(t.Op("Relu", "inside", {{data.node, 1}}));
  EXPECT_THAT(std::string(StructureConditionals(&t.graph).message()),
              AllOf(HasSubstr("'inside'"), HasSubstr("dead")));
}

TEST(RemoveIdentities, UsesGoToTheOriginal) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, kRows4);
  t.Output(t.Op("Relu", "y", {t.Op("Identity", "i2", {t.Op("Identity", "i1", {x})})}));
  RemoveIdentities(&t.graph);
  EXPECT_EQ(t.graph.size(), 2);
}

TEST(FuseEpilogues, BiasAndActivationJoinTheirMatMul) {
  for (const char* bias_op : {"BiasAdd", "Add"}) {
    TestGraph t;
    const ValueRef x = t.Input("x", DType::kFloat32, kRows4);
    const ValueRef product =
        t.Op("MatMul", "mm", {x, t.Floats("w", {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8})});
    const ValueRef biased = t.Op(bias_op, "bias", {product, t.Floats("b", {2}, {1, 2})});
    t.Output(t.Op("Relu", "y", {biased}));
    FuseEpilogues(&t.graph);
    Prune(&t.graph);
    const Node& fused = t.graph.node(t.graph.outputs[0].node);
    EXPECT_EQ(fused.op->name, "MatMul");
    EXPECT_TRUE(fused.attrs.Bool("fused_bias"));
    EXPECT_EQ(fused.attrs.String("fused_activation"), "Relu");
    EXPECT_EQ(fused.inputs.size(), 3u);
  }
}

TEST(FuseEpilogues, AValueThatOthersReadStays) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, kRows4);
  const ValueRef product =
      t.Op("MatMul", "mm", {x, t.Floats("w", {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8})});
  t.Output(product);
  t.Output(t.Op("Relu", "y", {product}));
  FuseEpilogues(&t.graph);
  EXPECT_EQ(CountOps(t.graph, "Relu"), 1);
}

TEST(FuseEpilogues, ABiasOfAnotherLengthIsNotABias) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, kRows4);
  const ValueRef product =
      t.Op("MatMul", "mm", {x, t.Floats("w", {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8})});
  t.Output(t.Op("Add", "y", {product, t.Floats("b", {1}, {1})}));
  FuseEpilogues(&t.graph);
  EXPECT_EQ(CountOps(t.graph, "Add"), 1);
}

}  // namespace
}  // namespace floe
