#include "base/budget.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace floe {
namespace {

TEST(Budget, OutsideAScopeNothingIsCounted) {
  EXPECT_EQ(Budget::Current(), nullptr);
  EXPECT_TRUE(CheckValueBytes(INT64_MAX).ok());
  EXPECT_TRUE(SpendVisits(INT64_MAX).ok());
  EXPECT_TRUE(SpendLoopRound().ok());
  const MemoryCharge charge(INT64_MAX);
}

TEST(Budget, MemoryIsHeldUntilTheChargeEndsWhereverThatIs) {
  MemoryCharge kept;
  Budget budget({.max_value_bytes = 80, .max_bytes = 100});
  {
    const BudgetScope scope(&budget);
    kept = MemoryCharge(60);
    EXPECT_EQ(budget.bytes_held(), 60);
    EXPECT_TRUE(CheckValueBytes(40).ok());
    EXPECT_EQ(CheckValueBytes(41).code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(CheckValueBytes(81).code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(CheckBlockBytes(-1).code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THROW(MemoryCharge(41), std::bad_alloc);
    const MemoryCharge more(40);
    EXPECT_EQ(budget.bytes_held(), 100);
  }
  EXPECT_EQ(budget.bytes_held(), 60);
  kept = MemoryCharge();
  EXPECT_EQ(budget.bytes_held(), 0);
}

TEST(Budget, RoundsAndVisitsRunOut) {
  Budget budget({.max_loop_iterations = 2, .max_visits = 10});
  const BudgetScope scope(&budget);
  EXPECT_TRUE(SpendLoopRound().ok());
  EXPECT_TRUE(SpendLoopRound().ok());
  EXPECT_EQ(SpendLoopRound().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(SpendVisits(10).ok());
  {
    const VisitScope visits;
    EXPECT_TRUE(SpendVisits(10).ok());
    EXPECT_FALSE(SpendVisits(1).ok());
  }
  EXPECT_EQ(SpendVisits(1).code(), absl::StatusCode::kResourceExhausted);
  budget.Restart();
  EXPECT_TRUE(SpendLoopRound().ok());
  EXPECT_TRUE(SpendVisits(10).ok());
}

TEST(Budget, DeadlineAndCancellation) {
  FakeClock clock;
  CancelToken cancel;
  Budget budget;
  budget.SetDeadline(clock.Now() + std::chrono::seconds(1), &clock);
  budget.SetCancel(&cancel);
  const BudgetScope scope(&budget);
  EXPECT_TRUE(CheckRunTime().ok());
  clock.Advance(std::chrono::seconds(1));
  EXPECT_EQ(CheckRunTime().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(SpendLoopRound().code(), absl::StatusCode::kDeadlineExceeded);
  cancel.Cancel();
  EXPECT_EQ(CheckRunTime().code(), absl::StatusCode::kCancelled);
}

TEST(Budget, ScopesNestAndADefaultStepsBack) {
  Budget outer, inner;
  {
    const BudgetScope scope(&outer);
    {
      const BudgetScope nested(&inner);
      EXPECT_EQ(Budget::Current(), &inner);
      const DefaultBudget kept({.max_visits = 0});
      EXPECT_EQ(Budget::Current(), &inner);
    }
    EXPECT_EQ(Budget::Current(), &outer);
  }
  const DefaultBudget fresh({.max_visits = 0});
  EXPECT_FALSE(SpendVisits(1).ok());
}

TEST(Budget, RunningOutOfMemoryBecomesAStatus) {
  const auto too_long = [](const std::string& text) -> absl::Status {
    std::string longer = text;
    longer.resize(longer.max_size() + text.size());
    return absl::OkStatus();
  };
  EXPECT_EQ(CatchOutOfMemory([&] { return too_long("x"); }).code(),
            absl::StatusCode::kResourceExhausted);
  const auto past_the_budget = []() -> absl::Status {
    Budget budget({.max_bytes = 1});
    const BudgetScope scope(&budget);
    const MemoryCharge charge(2);
    return absl::OkStatus();
  };
  EXPECT_EQ(CatchOutOfMemory(past_the_budget).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Budget::Current(), nullptr);
}

}  // namespace
}  // namespace floe
