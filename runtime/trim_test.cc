// Memory of values whose size the run settles: kept at its high water, given back when asked.
#include <gtest/gtest.h>

#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "base/memory_budget.h"
#include "runtime/exec_context.h"
#include "runtime/test_loops.h"

namespace floe {
namespace {

// The positive elements of x, doubled; as many as there are.
TestGraph Positive() {
  TestGraph g;
  const ValueRef x = g.Input("x", DType::kFloat32, {Dim::Unknown()});
  const ValueRef mask = g.Op("Greater", "mask", {x, g.Floats("zero", {}, {0})});
  const ValueRef where = g.Op("Where", "where", {mask});
  const ValueRef picked = g.Op("GatherNd", "picked", {x, where});
  g.Output(g.Op("Add", "twice", {picked, picked}));
  return g;
}

class Trim : public testing::Test {
 protected:
  // Runs on n numbers, every second one positive.
  void Run(int64_t n) {
    std::vector<float> x(n);
    for (int64_t i = 0; i < n; ++i) x[i] = static_cast<float>(i % 2 == 0 ? i + 1 : -i);
    const auto plan = compiled_->Bind({Shape({n})});
    ASSERT_TRUE(plan.ok()) << plan.status();
    ASSERT_TRUE(context_.Prepare(*plan, n).ok());
    context_.BindInput(0, x.data());
    const absl::Status status = context_.Run();
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(context_.Output(0).shape, Shape({(n + 1) / 2}));
    for (int64_t i = 0; i < (n + 1) / 2; ++i)
      ASSERT_EQ(context_.Output(0).as<float>()[i], static_cast<float>(4 * i + 2));
  }

  const std::shared_ptr<const CompiledSignature> compiled_ = Positive().Compile();
  ExecContext context_;
};

TEST_F(Trim, HighWaterIsKeptAndGivenBack) {
  constexpr int64_t kLarge = 1 << 16;
  Run(kLarge);
  const size_t high = context_.pool_bytes();
  EXPECT_GE(high, kLarge / 2 * sizeof(int64_t));  // the places
  for (int round = 0; round < 3; ++round) Run(kLarge);
  EXPECT_EQ(context_.pool_bytes(), high);
  Run(10);
  const size_t held = context_.pool_bytes();
  EXPECT_GE(held, high);
  EXPECT_LE(held, high + 1024);  // blocks of small sizes
  EXPECT_EQ(context_.Trim(), held);
  EXPECT_EQ(context_.pool_bytes(), 0u);
  Run(10);
  EXPECT_LT(context_.pool_bytes(), high / 10);
  Run(kLarge);
  EXPECT_LE(context_.pool_bytes(), high + 1024);  // small blocks of the run before
}

// The arena is paid for as it grows, and a large one goes when the context is idle.
TEST(TrimArena, LargeOnesAreGivenBack) {
  TestGraph g;
  g.Output(g.Op("Neg", "y",
                {g.Op("Exp", "e", {g.Input("x", DType::kFloat32, {Dim::Unknown(), 1024})})}));
  const auto compiled = g.Compile();
  const auto plan = compiled->Bind({Shape({1, 1024})});
  ASSERT_TRUE(plan.ok()) << plan.status();
  const MemoryBudget memory(int64_t{64} << 20);
  std::optional<MemoryScope> scope(std::in_place, memory);
  ExecContext context;
  scope.reset();  // other threads have none
  const int64_t large = ((int64_t{32} << 20) - (*plan)->ArenaBytes(0)) / (*plan)->ArenaBytes(1);
  for (const int64_t rows : {int64_t{1}, large, int64_t{1}}) {
    ASSERT_TRUE(context.Prepare(*plan, rows).ok());
    EXPECT_EQ(memory.in_use(), static_cast<int64_t>(context.arena_bytes()));
  }
  EXPECT_GT(memory.in_use(), 16 << 20) << "kept while requests come";
  const absl::Status refused = context.Prepare(*plan, 3 * large);
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_NE(refused.message().find("memory_limit is 64.0 MiB"), std::string::npos) << refused;
  ASSERT_TRUE(context.Prepare(*plan, large).ok()) << "the refusal left it as it was";
  context.Trim();
  EXPECT_EQ(memory.in_use(), 0);
  ASSERT_TRUE(context.Prepare(*plan, 1).ok());
  const std::vector<float> zeros(1024, 0);
  context.BindInput(0, zeros.data());
  ASSERT_TRUE(context.Run().ok());
  EXPECT_EQ(context.Output(0).as<float>()[1023], -1.0f);
  const int64_t small = memory.in_use();
  context.Trim();
  EXPECT_EQ(memory.in_use(), small) << "a small one stays";
}

// Values make room as soon as their last reader is done, so a chain needs two of them at a time.
TEST_F(Trim, DeadValuesMakeRoom) {
  TestGraph g;
  const ValueRef x = g.Input("x", DType::kFloat32, {Dim::Unknown()});
  ValueRef value = g.Op("GatherNd", "picked", {x, g.Op("Where", "where", {x})});
  for (int i = 0; i < 20; ++i) value = g.Op("Exp", "e" + std::to_string(i), {value});
  g.Output(g.Op("Neg", "y", {value}));
  const auto compiled = g.Compile();
  const std::vector<float> ones(100000, -1.0f);
  const auto plan = compiled->Bind({Shape({100000})});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_TRUE(context_.Prepare(*plan, 100000).ok());
  context_.BindInput(0, ones.data());
  ASSERT_TRUE(context_.Run().ok());
  // The places (8 bytes each) with one float each, or two floats each.
  EXPECT_LE(context_.pool_bytes(), 100000 * (8 + 4 + 4) * 5 / 4 + 4096);
}

TEST(TrimLoop, SubgraphsGiveBackTheirsToo) {
  const auto compiled = CollectingLoop(Container::kPushedList, 100, 1000).Compile();
  const auto plan = compiled->Bind({Shape({1000})});
  ASSERT_TRUE(plan.ok()) << plan.status();
  const std::vector<float> x(1000, 2.0f);
  ExecContext context;
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(context.Prepare(*plan, 1).ok());
    context.BindInput(0, x.data());
    const absl::Status status = context.Run();
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(context.Output(0).as<float>()[99 * 1000], 101.0f);
    EXPECT_GT(context.pool_bytes(), 0u);
    context.Trim();
    EXPECT_EQ(context.pool_bytes(), 0u);
  }
}

}  // namespace
}  // namespace floe
