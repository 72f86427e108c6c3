#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/passes/cond_test_graph.h"
#include "runtime/passes/passes.h"
#include "runtime/test_graph.h"

namespace floe {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const SymShape kRows4 = {Dim::Unknown(), 4};

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

}  // namespace
}  // namespace floe
