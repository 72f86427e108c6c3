#include <gtest/gtest.h>

#include "runtime/passes/loop_test_graph.h"
#include "runtime/passes/passes.h"
#include "runtime/test_graph.h"

namespace floe {
namespace {

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

TEST(Prune, ResultsOfBranchesThatNobodyReadsGo) {
  TestGraph then_branch, else_branch;
  for (TestGraph* g : {&then_branch, &else_branch}) {
    g->Input("n", DType::kInt32, {});
    g->Output(g->Op("FloorDiv", "quotient", {g->Int("seven", 7), {0, 0}}));
    g->Output(g->Op("Add", "sum", {{0, 0}, g->Int("one", 1)}));
  }
  TestGraph t;
  const ValueRef n = t.Input("n", DType::kInt32, {});
  const ValueRef p = t.Input("p", DType::kBool, {});
  const ValueRef both = Control(t, "If", {p, n}, 2, {&then_branch, &else_branch});
  const ValueRef after = t.Op("Neg", "after", {n});
  t.graph.mutable_node(after.node).control_inputs = {both.node};
  t.Output({both.node, 1});
  t.Output(after);
  Graph pruned = t.graph;
  Prune(&pruned);
  const Node& node = pruned.node(pruned.outputs[0].node);
  EXPECT_EQ(node.num_outputs, 1);
  for (const auto& branch : node.subgraphs) EXPECT_EQ(branch->outputs.size(), 1u);
  const Node& waits = pruned.node(pruned.outputs[1].node);
  EXPECT_EQ(waits.control_inputs, std::vector<int>{pruned.outputs[0].node});
  // A quotient by 0 would fail.
  const auto got =
      RunGraph(t, {Tensor::Scalar<int32_t>(DType::kInt32, 0), Tensor::Scalar(DType::kBool, true)});
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(*got[0].as<int32_t>(), 1);
}

}  // namespace
}  // namespace floe
