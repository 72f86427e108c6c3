#include "server/registry/diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace floe::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr int64_t kDiffRevision = 1;
constexpr TimePoint kAtOnce = TimePoint::min();

DesiredVersion Wanted(int64_t version, int64_t revision = kDiffRevision) {
  return {.key = {revision, version, "f", 7}};
}
DesiredVersion Failed(int64_t version, TimePoint retry_at = TimePoint::max()) {
  DesiredVersion one = Wanted(version);
  one.failed = Attempt{.failures = 1, .retry_at = retry_at};
  return one;
}

class DiffTest : public testing::Test {
 protected:
  void Current(std::vector<DesiredVersion> versions) {
    desired_.current = Desired{kDiffRevision, std::move(versions), {}};
  }
  ServableId Add(int64_t version, VersionState state, int64_t revision = kDiffRevision) {
    Servable& one = actual_.emplace_back();
    one.id = static_cast<ServableId>(actual_.size());
    one.key = {revision, version, "f", 7};
    one.state = state;
    one.published = one.Available();
    return one.id;
  }
  Actions Now() const { return DiffOf(desired_, actual_); }
  // What is loaded, and when it may be.
  static std::vector<std::pair<int64_t, TimePoint>> Loads(const Actions& actions) {
    std::vector<std::pair<int64_t, TimePoint>> loads;
    for (const Actions::Load& one : actions.load) loads.emplace_back(one.key.version, one.at);
    return loads;
  }

  AllDesired desired_;
  Servables actual_;
};

TEST_F(DiffTest, WhatServesAndIsDesiredStays) {
  Current({Wanted(3)});
  const ServableId id = Add(3, VersionState::kAvailable);
  EXPECT_THAT(Now().publish, ElementsAre(id));
  EXPECT_THAT(Now().load, IsEmpty());
  EXPECT_THAT(Now().withdraw, IsEmpty());
}

TEST_F(DiffTest, AVersionIsWithdrawnOnlyForOneThatServes) {
  Current({Wanted(3)});
  const ServableId old = Add(2, VersionState::kAvailable);
  EXPECT_THAT(Loads(Now()), ElementsAre(Pair(3, kAtOnce)));
  EXPECT_THAT(Now().withdraw, IsEmpty());
  const ServableId newer = Add(3, VersionState::kLoading);
  EXPECT_THAT(Now().load, IsEmpty());
  EXPECT_THAT(Now().withdraw, IsEmpty());
  actual_.back().state = VersionState::kAvailable;
  EXPECT_THAT(Now().publish, ElementsAre(newer));
  EXPECT_THAT(Now().withdraw, ElementsAre(old));
}

TEST_F(DiffTest, NothingIsLeftToServeWhereNothingIsConfigured) {
  const ServableId old = Add(2, VersionState::kAvailable);
  EXPECT_THAT(Now().withdraw, ElementsAre(old));
  Current({});  // its place is empty: nothing takes its place
  EXPECT_THAT(Now().withdraw, IsEmpty());
}

TEST_F(DiffTest, AFailureWaitsForItsRetry) {
  const TimePoint later(std::chrono::hours(1));
  Current({Failed(3, later), Failed(2), Wanted(1)});
  EXPECT_THAT(Loads(Now()), ElementsAre(Pair(3, later), Pair(1, kAtOnce)));
}

TEST_F(DiffTest, ALoadThatNobodyWantsIsCancelled) {
  Current({Wanted(3)});
  const ServableId loading = Add(1, VersionState::kLoading);
  Add(2, VersionState::kUnloading);
  EXPECT_THAT(Now().cancel, ElementsAre(loading));
  EXPECT_THAT(Now().withdraw, IsEmpty());
}

TEST_F(DiffTest, WhatHasNothingToLoadFailsOnce) {
  Current({Wanted(3)});
  desired_.current->versions[0].error = absl::InvalidArgumentError("no model");
  ASSERT_EQ(Now().fail.size(), 1u);
  EXPECT_EQ(Now().fail[0].key, Wanted(3).key);
  EXPECT_THAT(Now().load, IsEmpty());
  desired_.current->versions[0].failed = Attempt{.failures = 1};
  EXPECT_THAT(Now().fail, IsEmpty());
}

TEST_F(DiffTest, FilesAreScannedBeforeTheyAreLoaded) {
  Current({Wanted(3)});
  desired_.current->versions[0].scanned = false;
  EXPECT_THAT(Now().load, IsEmpty());
}

TEST_F(DiffTest, WhatIsStagedIsLoadedBesideAndNotPublished) {
  Current({Wanted(3)});
  desired_.staged = Desired{kDiffRevision + 1, {Wanted(3, kDiffRevision + 1)}, {}};
  Add(3, VersionState::kAvailable);
  ASSERT_EQ(Now().load.size(), 1u);
  EXPECT_EQ(Now().load[0].key.revision, kDiffRevision + 1);
  EXPECT_TRUE(Now().load[0].staged);
  Add(3, VersionState::kAvailable, kDiffRevision + 1);
  EXPECT_THAT(Now().publish, ElementsAre(1));
  EXPECT_THAT(Now().withdraw, IsEmpty());
}

TEST_F(DiffTest, WhatBothConfigurationsWantIsLoadedOnce) {
  Current({Wanted(3)});
  desired_.staged = desired_.current;
  EXPECT_EQ(Now().load.size(), 1u);
}

}  // namespace
}  // namespace floe::server
