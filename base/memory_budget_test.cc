#include "base/memory_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <utility>

namespace floe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(MemoryBudgetTest, RefusesWithNumbersAndGivesBack) {
  const MemoryBudget budget(1000);
  {
    auto first = budget.Take(600);
    ASSERT_TRUE(first.ok()) << first.status();
    const absl::Status refused = budget.Take(500).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(refused.message()),
                AllOf(HasSubstr("500"), HasSubstr("600"), HasSubstr("1000")));
    EXPECT_EQ(budget.in_use(), 600);
    EXPECT_FALSE(first->Resize(1001).ok());
    EXPECT_EQ(first->bytes(), 600);
    EXPECT_TRUE(first->Resize(900).ok());
    MemoryShare moved = *std::move(first);
    EXPECT_EQ(budget.in_use(), 900);
    EXPECT_TRUE(moved.Resize(100).ok()) << "less is always granted";
    EXPECT_EQ(budget.in_use(), 100);
  }
  EXPECT_EQ(budget.in_use(), 0);
  const MemoryBudget unlimited(0);
  EXPECT_TRUE(unlimited.Take(int64_t{1} << 60).ok());
}

TEST(MemoryBudgetTest, LargeSharesLeaveRoomForSmallOnes) {
  const MemoryBudget budget(1600);
  const auto most = budget.Take(1500);
  ASSERT_TRUE(most.ok());
  EXPECT_FALSE(budget.Take(60).ok()) << "it must leave 60 more";
  EXPECT_TRUE(budget.Take(40).ok());
  EXPECT_FALSE(MemoryBudget(1600).Take(1501).ok());
}

TEST(MemoryBudgetTest, SharesAreSplitAndJoined) {
  const MemoryBudget budget(1000);
  MemoryShare whole = *budget.Take(100);
  MemoryShare part = whole.Split(30);
  EXPECT_EQ(whole.bytes(), 70);
  EXPECT_EQ(part.bytes(), 30);
  part.Add(whole.Split(1000));
  EXPECT_EQ(part.bytes(), 100);
  EXPECT_EQ(budget.in_use(), 100);
  part = MemoryShare();
  EXPECT_EQ(budget.in_use(), 0);
}

struct Keeper : MemoryKeeper {
  MemoryShare share;
  int asked = 0;
  void GiveBack() override {
    ++asked;
    share = MemoryShare();
  }
};

TEST(MemoryBudgetTest, KeepersAreAskedBeforeARefusal) {
  const MemoryBudget budget(1000);
  auto keeper = std::make_shared<Keeper>();
  budget.AddKeeper(keeper);
  keeper->share = *budget.Take(700);
  EXPECT_TRUE(budget.Take(200).ok());
  EXPECT_EQ(keeper->asked, 0);
  const auto large = budget.Take(500);
  EXPECT_TRUE(large.ok()) << large.status();
  EXPECT_EQ(keeper->asked, 1);
  EXPECT_FALSE(budget.Take(500).ok());
  keeper.reset();
  EXPECT_FALSE(budget.Take(500).ok());
}

TEST(MemoryScopeTest, TheInnermostPays) {
  EXPECT_EQ(TakeMemory(10)->bytes(), 0) << "nobody counts";
  const MemoryBudget outer(1000), inner(100);
  const MemoryScope first(outer);
  const MemoryShare a = *TakeMemory(500);
  {
    const MemoryScope second(inner);
    const MemoryShare b = *TakeMemory(50);
    EXPECT_EQ(inner.in_use(), 50);
    EXPECT_THROW(TakeMemoryOrThrow(60), std::bad_alloc);
    const absl::Status error = second.Explain(absl::ResourceExhaustedError("node 'x'"));
    EXPECT_THAT(std::string(error.message()),
                AllOf(HasSubstr("node 'x'"), HasSubstr("60 bytes"), HasSubstr("50 bytes"),
                      HasSubstr("memory_limit is 100")));
    EXPECT_EQ(second.Explain(error), error) << "once";
    EXPECT_TRUE(second.Explain(absl::OkStatus()).ok());
  }
  EXPECT_EQ(outer.in_use(), 500);
  EXPECT_EQ(inner.in_use(), 0);
}

TEST(MemoryScopeTest, WhatIsPrepaidIsUsedFirst) {
  const MemoryBudget budget(1000);
  MemoryShare prepaid = *budget.Take(100);
  const MemoryScope scope(budget, &prepaid);
  const MemoryShare a = *TakeMemory(60);
  EXPECT_EQ(budget.in_use(), 100);
  const MemoryShare b = *TakeMemory(60);
  EXPECT_EQ(b.bytes(), 60);
  EXPECT_EQ(budget.in_use(), 120);
  EXPECT_EQ(prepaid.bytes(), 0);
  prepaid = *budget.Take(50);
  EXPECT_TRUE(CheckMemory(100).ok());
  EXPECT_FALSE(CheckMemory(2000).ok());
  EXPECT_EQ(budget.in_use(), 170);
  EXPECT_FALSE(TakeMemory(2000).ok());
  EXPECT_EQ(prepaid.bytes(), 50) << "a refusal leaves it";
}

}  // namespace
}  // namespace floe
