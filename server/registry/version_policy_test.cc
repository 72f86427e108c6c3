#include "server/registry/version_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/registry/memory_budget.h"
#include "server/registry/version_labels.h"

namespace floe::server {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

VersionPolicy Latest(int64_t n) {
  VersionPolicy policy;
  policy.latest = n;
  return policy;
}

TEST(VersionPolicyTest, Latest) {
  EXPECT_THAT(WantedVersions(Latest(1), {9, 4, 2}, {}), ElementsAre(9));
  EXPECT_THAT(WantedVersions(Latest(2), {9, 4, 2}, {}), ElementsAre(9, 4));
  EXPECT_THAT(WantedVersions(Latest(5), {9, 4, 2}, {}), ElementsAre(9, 4, 2));
  EXPECT_THAT(WantedVersions(Latest(1), {}, {}), ElementsAre());
}

TEST(VersionPolicyTest, ABadVersionTakesNothingAway) {
  EXPECT_THAT(WantedVersions(Latest(1), {9, 4, 2}, {9}), ElementsAre(9, 4));
  EXPECT_THAT(WantedVersions(Latest(2), {9, 4, 2}, {4}), ElementsAre(9, 4, 2));
  EXPECT_THAT(WantedVersions(Latest(1), {9, 4}, {9, 4}), ElementsAre(9, 4));
}

TEST(VersionPolicyTest, AllAndSpecific) {
  VersionPolicy policy;
  policy.kind = VersionPolicy::Kind::kAll;
  EXPECT_THAT(WantedVersions(policy, {9, 4, 2}, {9}), ElementsAre(9, 4, 2));
  policy.kind = VersionPolicy::Kind::kSpecific;
  policy.specific = {2, 7, 2};
  EXPECT_THAT(WantedVersions(policy, {9, 4, 2}, {2}), ElementsAre(7, 2));
}

TEST(VersionPolicyTest, OnlyPassingErrorsAreTriedAgain) {
  EXPECT_TRUE(MayRetry(absl::UnavailableError("the disk is gone")));
  EXPECT_TRUE(MayRetry(absl::ResourceExhaustedError("memory is short")));
  EXPECT_TRUE(MayRetry(absl::NotFoundError("no such file")));
  EXPECT_FALSE(MayRetry(absl::InvalidArgumentError("no model")));
  EXPECT_FALSE(MayRetry(absl::UnimplementedError("no such op")));
  EXPECT_FALSE(MayRetry(absl::FailedPreconditionError("")));
  EXPECT_FALSE(MayRetry(Final(absl::ResourceExhaustedError("never fits"))));
}

TEST(VersionLabels, OnlyMoveToWhatIsAvailable) {
  const auto available = [](int64_t version) { return version == 1 || version == 2; };
  const auto check = [&](const VersionLabels& before, const VersionLabels& after, bool allow) {
    return CheckLabels("m", before, after, available, allow);
  };
  EXPECT_TRUE(check({}, {{"a", 1}}, false).ok());
  EXPECT_TRUE(check({{"a", 1}}, {{"a", 2}}, false).ok());
  EXPECT_TRUE(check({{"a", 3}}, {{"a", 3}}, false).ok()) << "it stays where it was";
  EXPECT_TRUE(check({{"a", 3}}, {}, false).ok());
  const absl::Status moved = check({{"a", 1}}, {{"a", 3}}, false);
  EXPECT_EQ(moved.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(moved.message()),
              AllOf(HasSubstr("'m'"), HasSubstr("'a'"), HasSubstr("version 3")));
  EXPECT_EQ(check({}, {{"a", 3}}, false).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(check({}, {{"a", 3}}, true).ok()) << "nobody uses it yet";
  EXPECT_FALSE(check({{"a", 1}}, {{"a", 3}}, true).ok()) << "somebody uses it";
}

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
