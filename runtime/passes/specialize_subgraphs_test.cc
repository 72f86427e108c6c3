#include <gtest/gtest.h>

#include "runtime/passes/loop_test_graph.h"
#include "runtime/passes/passes.h"

namespace floe {
namespace {

TEST(SpecializeSubgraphs, ConstantsThatNoRoundChangesGoInside) {
  Loop loop(true);
  SpecializeSubgraphs(&loop.t.graph);
  EXPECT_EQ(loop.While().inputs.size(), 3u);  // i, x and v; w and n are constants inside
  EXPECT_EQ(loop.While().num_outputs, 3);
  const Graph& body = *loop.While().subgraphs[1];
  EXPECT_EQ(body.inputs.size(), 3u);
  EXPECT_EQ(body.outputs.size(), 3u);
  EXPECT_EQ(CountOps(body, "Const"), 2);  // one, w
  EXPECT_EQ(CountOps(*loop.While().subgraphs[0], "Const"), 1);
  // w afterwards is w before.
  const Node& after = loop.t.graph.node(loop.t.graph.outputs[1].node);
  EXPECT_EQ(loop.t.graph.node(after.inputs[0].node).op->name, "Const");
}

TEST(SpecializeSubgraphs, UnneededVariablesGo) {
  // A variable that only feeds itself: nobody reads the sum.
  TestGraph condition, body;
  condition.Input("i", DType::kInt32, {});
  condition.Input("sum", DType::kInt32, {});
  condition.Output(condition.Op("Less", "less", {{0, 0}, condition.Int("n", 3)}));
  body.Input("i", DType::kInt32, {});
  body.Input("sum", DType::kInt32, {});
  body.Output(body.Op("Add", "next", {{0, 0}, body.Int("one", 1)}));
  body.Output(body.Op("Add", "sum_next", {{1, 0}, {0, 0}}));
  TestGraph t;
  const ValueRef start = t.Input("start", DType::kInt32, {});
  t.Output(Control(t, "While", {start, t.Int("zero", 0)}, 2, {&condition, &body}));
  SpecializeSubgraphs(&t.graph);
  const Node& node = t.graph.node(t.graph.outputs[0].node);
  EXPECT_EQ(node.inputs.size(), 1u);
  EXPECT_EQ(CountOps(*node.subgraphs[1], "Add"), 1);
  const auto got = RunGraph(t, {Tensor::Scalar<int32_t>(DType::kInt32, 1)});
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(*got[0].as<int32_t>(), 3);
}

TEST(SpecializeSubgraphs, BranchesGetTheirConstants) {
  TestGraph then_branch, else_branch;
  for (TestGraph* g : {&then_branch, &else_branch}) {
    for (const char* name : {"x", "c", "unused"})
      g->Input(name, DType::kFloat32, SymShape::UnknownRank());
  }
  then_branch.Output(then_branch.Op("Add", "sum", {{0, 0}, {1, 0}}));
  else_branch.Output(else_branch.Op("Mul", "product", {{0, 0}, {1, 0}}));
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, kRows4);
  const ValueRef p = t.Input("p", DType::kBool, {});
  t.Output(Control(t, "If", {p, x, t.Floats("c", {1}, {3}), x}, 1, {&then_branch, &else_branch}));
  Graph special = t.graph;
  SpecializeSubgraphs(&special);
  const Node& node = special.node(special.outputs[0].node);
  EXPECT_EQ(node.inputs.size(), 2u);
  for (const auto& branch : node.subgraphs) EXPECT_EQ(CountOps(*branch, "Const"), 1);
  for (bool taken : {false, true}) {
    const std::vector<Tensor> in = {Wavy(Shape({2, 4}), 1), Tensor::Scalar(DType::kBool, taken)};
    const auto got = RunGraph(t, in), want = RunGraph(t, in, {"all"});
    ASSERT_EQ(got.size(), 1u);
    ExpectSameBits(got[0], want[0]);
  }
}

}  // namespace
}  // namespace floe
