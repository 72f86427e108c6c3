#include <gtest/gtest.h>

#include "runtime/passes/loop_test_graph.h"
#include "runtime/passes/passes.h"

namespace floe {
namespace {

TEST(HoistInvariants, FloatingValuesOfUnchangedVariablesLeaveTheBody) {
  Loop loop(true);
  SpecializeSubgraphs(&loop.t.graph);
  ASSERT_TRUE(HoistInvariants(&loop.t.graph, loop.t.InputTypes(), {}).ok());
  EXPECT_EQ(CountOps(loop.t.graph, "Sqrt"), 1) << DebugString(loop.t.graph);
  const Graph& body = *loop.While().subgraphs[1];
  EXPECT_EQ(CountOps(body, "Sqrt") + CountOps(body, "Abs"), 0) << DebugString(body);
  EXPECT_EQ(CountOps(body, "Tanh"), 1);
  EXPECT_EQ(body.inputs.size(), body.outputs.size());
  EXPECT_EQ(loop.While().inputs.size(), body.inputs.size());
  EXPECT_EQ(loop.While().subgraphs[0]->inputs.size(), body.inputs.size());
}

TEST(HoistInvariants, WhatMayFailStaysInTheLoop) {
  TestGraph condition, body;
  for (TestGraph* g : {&condition, &body}) {
    g->Input("i", DType::kInt32, {});
    g->Input("x", DType::kFloat32, SymShape::UnknownRank());
    g->Input("table", DType::kFloat32, SymShape::UnknownRank());
    g->Input("at", DType::kInt32, SymShape::UnknownRank());
  }
  condition.Output(condition.Op("Less", "less", {{0, 0}, condition.Int("n", 0)}));
  body.Output(body.Op("Add", "next", {{0, 0}, body.Int("one", 1)}));
  const ValueRef found = body.Op("GatherV2", "found", {{2, 0}, {3, 0}, body.Int("axis", 0)});
  body.Output(body.Op("Add", "x_next", {{1, 0}, found}));
  body.Output({2, 0});
  body.Output({3, 0});
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, {4}),
                 table = t.Input("table", DType::kFloat32, {4});
  const ValueRef at = t.Input("at", DType::kInt32, {1});
  const ValueRef loop =
      Control(t, "While", {t.Int("zero", 0), x, table, at}, 4, {&condition, &body});
  t.Output({loop.node, 1});
  // No iteration runs, so the index beyond the table never matters.
  const Tensor beyond = Tensor::Vector<int32_t>(DType::kInt32, {9});
  const auto got = RunGraph(t, {Wavy(Shape({4}), 1), Wavy(Shape({4}), 2), beyond});
  ASSERT_EQ(got.size(), 1u);
  ExpectSameBits(got[0], Wavy(Shape({4}), 1));
}

TEST(Loops, TheAnswersStay) {
  for (const bool constant : {false, true}) {
    for (const int iterations : {0, 1, 3}) {
      Loop loop(constant, iterations);
      std::vector<Tensor> in = {Wavy(Shape({2, 4}), 1), Wavy(Shape({4}), 2)};
      if (!constant) in.push_back(Wavy(Shape({4, 4}), 5));
      const auto got = RunGraph(loop.t, in), want = RunGraph(loop.t, in, {"all"});
      ASSERT_EQ(got.size(), 2u);
      ASSERT_EQ(want.size(), 2u);
      for (size_t k = 0; k < 2; ++k) ExpectSameBits(got[k], want[k]);
    }
  }
}

}  // namespace
}  // namespace floe
