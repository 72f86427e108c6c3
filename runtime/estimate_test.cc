// Estimates grow with the work, whoever does it, and are the same every time.
#include "runtime/estimate.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/exec_context.h"
#include "runtime/test_loops.h"

namespace floe {
namespace {

std::shared_ptr<const Plan> PlanOf(const TestGraph& g, const Shape& input) {
  auto plan = g.Compile()->Bind({input});
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *plan : nullptr;
}

// y = op(x W), x [rows, k], W [k, n].
TestGraph Dense(int64_t k, int64_t n, const std::string& op = "Relu") {
  TestGraph g;
  const ValueRef x = g.Input("x", DType::kFloat32, {Dim::Unknown(), Dim(k)});
  const ValueRef w = g.Floats("w", Shape({k, n}), std::vector<float>(k * n, 0.5F));
  g.Output(g.Op(op, "y", {g.Op("MatMul", "product", {x, w})}));
  return g;
}

TEST(Estimate, GrowsWithRows) {
  const auto plan = PlanOf(Dense(256, 256), Shape({1, 256}));
  EXPECT_TRUE(WorkIsKnown(*plan));
  const double few = RunMicros(*plan, 64), many = RunMicros(*plan, 640);
  EXPECT_NEAR(RunMicros(*plan, 64, 4), few / 4, 1e-6);
  EXPECT_GT(few, 0);
  EXPECT_NEAR(many / few, 10, 1.5);
  EXPECT_EQ(RunMicros(*PlanOf(Dense(256, 256), Shape({1, 256})), 64), few);
}

TEST(Estimate, CountsWhatFollowsAProduct) {
  const Shape row({1, 4});
  EXPECT_GT(RunMicros(*PlanOf(Dense(4, 512, "Tanh"), row), 64),
            1.5 * RunMicros(*PlanOf(Dense(4, 512, "Relu"), row), 64));
}

// What a part of a table is read for does not depend on how long the table is.
TEST(Estimate, GatherReadsWhatItGives) {
  const auto micros = [](int64_t words) {
    TestGraph g;
    const ValueRef x = g.Input("x", DType::kInt32, {Dim::Unknown()});
    const ValueRef table = g.Floats("table", Shape({words, 8}), std::vector<float>(words * 8));
    g.Output(g.Op("GatherV2", "y", {table, x, g.Int("axis", 0)}));
    return RunMicros(*PlanOf(g, Shape({1})), 16);
  };
  EXPECT_EQ(micros(100), micros(100'000));
}

double EstimateOfRun(const std::shared_ptr<const Plan>& plan) {
  ExecContext context(1);
  RunEstimate estimate;
  context.Observe(&estimate);
  EXPECT_TRUE(context.Prepare(plan, 1).ok());
  std::vector<float> x(64, 1);
  context.BindInput(0, x.data());
  EXPECT_TRUE(context.Run().ok());
  return estimate.micros();
}

// A loop's own estimate says nothing of its rounds; a run that is observed counts them.
TEST(Estimate, OfARunCountsTheRoundsOfItsLoops) {
  const auto loop = [](int steps) {
    return PlanOf(CollectingLoop(Container::kList, steps, 64), Shape({64}));
  };
  const auto ten = loop(10), hundred = loop(100);
  EXPECT_FALSE(WorkIsKnown(*ten));
  const double few = EstimateOfRun(ten);
  EXPECT_EQ(EstimateOfRun(ten), few) << "nothing is timed";
  EXPECT_NEAR(EstimateOfRun(hundred) / few, 10, 3);
}

TEST(Estimate, OfARunIsThatOfItsPlanWithoutLoops) {
  const auto plan = PlanOf(Dense(64, 64), Shape({1, 64}));
  EXPECT_NEAR(EstimateOfRun(plan), RunMicros(*plan, 1), 1e-6);
}

// On the host they cost what their steps cost.
TEST(Estimate, OfIslandsIsKnownFromTheRows) {
  const TestGraph g = Dense(256, 256);
  const auto compiled = g.Compile({.islands = Placement{.all = true}});
  const auto plan = compiled->Bind({Shape({1, 256})});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ((*plan)->steps().size(), 1u);
  EXPECT_TRUE(WorkIsKnown(**plan));
  EXPECT_NEAR(RunMicros(**plan, 64), RunMicros(*PlanOf(g, Shape({1, 256})), 64), 1e-6);
}

}  // namespace
}  // namespace floe
