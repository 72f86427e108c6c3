#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/memory_budget.h"
#include "runtime/evaluate.h"
#include "runtime/exec_context.h"
#include "runtime/passes/cond_test_graph.h"
#include "runtime/passes/passes.h"
#include "runtime/test_graph.h"

namespace floe {
namespace {

using testing::AllOf;
using testing::HasSubstr;

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

TEST(FoldConstants, ASliceOfKnownDimsIsAConstant) {
  for (const int axis : {0, 1}) {
    TestGraph t;
    const ValueRef x = t.Input("x", DType::kFloat32, kRows4);
    const ValueRef shape = t.Op("Shape", "shape", {x}, {{"out_type", DType::kInt32}});
    t.Output(t.Op("StridedSlice", "dim",
                  {shape, t.Ints("begin", {axis}), t.Ints("end", {axis + 1}), t.Ints("by", {1})},
                  {{"shrink_axis_mask", int64_t{1}}}));
    ASSERT_TRUE(FoldConstants(&t.graph, t.InputTypes(), {}).ok());
    Prune(&t.graph);
    EXPECT_EQ(CountOps(t.graph, "StridedSlice"), 1 - axis);
    if (axis == 0) continue;
    const Node& dim = t.graph.node(t.graph.outputs[0].node);
    ASSERT_NE(dim.attrs.Find<Tensor>("value"), nullptr);
    EXPECT_EQ(*dim.attrs.Find<Tensor>("value")->as<int32_t>(), 4);
  }
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

TEST(FoldConstants, ASwitchWithoutOutputsIsRefused) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, kRows4);
  const ValueRef none = t.Op("SwitchN", "none", {x, t.Int("index", 0)});
  t.graph.mutable_node(none.node).num_outputs = 0;
  t.Output(t.Op("Identity", "y", {x}, {}, {none.node}));
  const absl::Status status = FoldConstants(&t.graph, t.InputTypes(), {});
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("'none'"), HasSubstr("outputs")));
}

TEST(FoldConstants, AnOutputInADeadBranchIsNamed) {
  Cond cond(true, false);
  cond.t.graph.outputs[0] = {cond.t.graph.size() - 3, 0};  // 'a', of the branch not taken
  const absl::Status status = FoldConstants(&cond.t.graph, cond.t.InputTypes(), {});
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("'a'"), HasSubstr("dead")));
}

int64_t ConstantBytes(const Graph& graph) {
  int64_t bytes = 0;
  for (const Node& node : graph.nodes())
    if (const Tensor* value = node.attrs.Find<Tensor>("value")) bytes += HeldMemory(value->view());
  return bytes;
}

// A few bytes that stand for many are left to the run, which may never need them.
TEST(FoldConstants, MuchFromLittleIsLeftToTheRun) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, kRows4);
  const ValueRef small = t.Op("Fill", "small", {t.Ints("few", {1024, 4}), t.Floats("s", {}, {1})});
  const ValueRef large =
      t.Op("Fill", "large", {t.Ints("many", {1 << 21, 4}), t.Floats("l", {}, {1})});
  t.Output(t.Op("Add", "y", {x, small}));
  t.Output(t.Op("Add", "z", {x, large}));
  ASSERT_TRUE(FoldConstants(&t.graph, t.InputTypes(), {}).ok());
  Prune(&t.graph);
  EXPECT_EQ(CountOps(t.graph, "Fill"), 1);
  EXPECT_LT(ConstantBytes(t.graph), 1 << 20);
}

// However large weights are: moved about at every run, they would cost more than what uses them.
TEST(FoldConstants, LargeWeightsAreFolded) {
  TestGraph t;
  Tensor weights = Tensor::Allocate(DType::kInt8, {4, (1 << 22) + 1});
  std::memset(weights.mutable_data(), 1, weights.bytes());
  const ValueRef turned =
      t.Op("Transpose", "turned", {t.Const("w", weights), t.Ints("perm", {1, 0})});
  t.Output(t.Op("ExpandDims", "y", {turned, t.Int("axis", 0)}));
  ASSERT_TRUE(FoldConstants(&t.graph, t.InputTypes(), {}).ok());
  Prune(&t.graph);
  EXPECT_EQ(t.graph.size(), 1);
}

// What each result may take is bounded, and what they may take together.
TEST(FoldConstants, ResultsAreBoundedTogether) {
  constexpr int64_t kBytes = int64_t{1} << 20;
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, {Dim::Unknown(), kBytes / 4});
  ValueRef sum = t.Floats("c", {kBytes / 4}, std::vector<float>(kBytes / 4, 1));
  const ValueRef one = t.Floats("one", {}, {1});
  for (int i = 0; i < 200; ++i) sum = t.Op("Add", "sum" + std::to_string(i), {sum, one});
  t.Output(t.Op("Add", "y", {x, sum}));
  const MemoryBudget memory;
  const MemoryScope scope(memory);
  ASSERT_TRUE(FoldConstants(&t.graph, t.InputTypes(), {}).ok());
  EXPECT_GT(CountOps(t.graph, "Add"), 100);
  EXPECT_LE(memory.in_use(), 80 * kBytes);
  Prune(&t.graph);
  EXPECT_LE(memory.in_use(), 2 * kBytes) << "what led to the last one is gone";
  const auto compiled = t.Compile();
  ASSERT_NE(compiled, nullptr);
  EXPECT_LE(memory.in_use(), 20 * kBytes);
}

TEST(FoldConstants, StringsThatDoubleEndSoon) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kString, {Dim::Unknown()});
  Tensor ten = Tensor::Allocate(DType::kString, Shape());
  *static_cast<std::string*>(ten.mutable_data()) = "0123456789";
  ValueRef text = t.Const("ten", ten);
  for (int i = 0; i < 40; ++i)
    text = t.Op("StringJoin", "twice" + std::to_string(i), {text, text},
                {{"N", int64_t{2}}, {"separator", std::string()}});
  t.Output(t.Op("StringJoin", "y", {x, text}, {{"N", int64_t{2}}, {"separator", std::string()}}));
  const MemoryBudget memory(int64_t{256} << 20);
  const MemoryScope scope(memory);
  const auto compiled = t.Compile();
  ASSERT_NE(compiled, nullptr);
  EXPECT_LE(memory.in_use(), int64_t{64} << 20);
  // And so does the run.
  const auto plan = compiled->Bind({Shape({1})});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ExecContext context;
  ASSERT_TRUE(context.Prepare(*plan, 1).ok());
  const std::string a = "a";
  context.BindInput(0, &a);
  const absl::Status status = context.Run();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("'twice"));
  EXPECT_LE(memory.in_use(), memory.limit());
}

}  // namespace
}  // namespace floe
