#include "server/registry/memory_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/registry/version_policy.h"

namespace floe::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(MemoryBudgetTest, RefusesWithNumbersAndGivesBack) {
  MemoryBudget budget(1000);
  {
    auto first = budget.Take(600);
    ASSERT_TRUE(first.ok()) << first.status();
    const absl::Status refused = budget.Take(500).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(refused.message()),
                AllOf(HasSubstr("500"), HasSubstr("600"), HasSubstr("1000")));
    EXPECT_TRUE(MayRetry(refused)) << "the others may leave";
    EXPECT_FALSE(MayRetry(budget.Take(1001).status())) << "it can never fit";
    EXPECT_EQ(budget.in_use(), 600);
    EXPECT_FALSE(first->Resize(1001).ok());
    EXPECT_EQ(first->bytes(), 600);
    EXPECT_TRUE(first->Resize(1000).ok());
    MemoryShare moved = *std::move(first);
    EXPECT_EQ(budget.in_use(), 1000);
    EXPECT_TRUE(moved.Resize(100).ok()) << "less is always granted";
    EXPECT_EQ(budget.in_use(), 100);
  }
  EXPECT_EQ(budget.in_use(), 0);
  MemoryBudget unlimited(0);
  EXPECT_TRUE(unlimited.Take(int64_t{1} << 60).ok());
}

}  // namespace
}  // namespace floe::server
