#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/passes/cond_test_graph.h"
#include "runtime/passes/passes.h"
#include "runtime/test_graph.h"

namespace floe {
namespace {

using testing::AllOf;
using testing::HasSubstr;

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

}  // namespace
}  // namespace floe
