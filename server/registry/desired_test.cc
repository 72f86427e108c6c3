#include "server/registry/desired.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "server/registry/diff.h"

namespace floe::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr int64_t kRevision = 1;
const TimePoint kNow(std::chrono::hours(1));

// A model whose configuration wants the latest version, with complete versions 3, 2 and 1 found.
class DesiredTest : public testing::Test {
 protected:
  DesiredTest() {
    model_.name = "m";
    model_.next_id = &next_id_;
    model_.current = TargetOf(kRevision);
  }
  static Target TargetOf(int64_t revision, int latest = 1) {
    Target target;
    ModelConfig config;
    config.versions.latest = latest;
    target.config = std::make_shared<const ModelConfig>(config);
    target.revision = revision;
    target.scanned = true;
    for (const int64_t version : {3, 2, 1})
      target.found.push_back({{.version = version, .file = "f", .stamp = 7}, kNow, true});
    return target;
  }
  Servable& Add(int64_t version, VersionState state, int64_t failures = 0,
                int64_t revision = kRevision) {
    Servable& one = model_.servables.emplace_back();
    one.id = next_id_++;
    one.key = {revision, version, "f", 7};
    one.attempt = model_.BeginAttempt(one.key);
    one.attempt->failures = failures;
    one.state = state;
    one.published = state == VersionState::kAvailable;
    return one;
  }
  Diff Compared() const { return DiffOf(model_, DesiredOf(model_), kNow); }

  int64_t next_id_ = 10;
  ModelState model_;
};

TEST_F(DesiredTest, TheLatestCompleteVersionIsDesired) {
  EXPECT_THAT(DesiredOf(model_).current, ElementsAre(Pair(kRevision, 3)));
  model_.current->found[0].settled = false;
  EXPECT_THAT(DesiredOf(model_).current, ElementsAre(Pair(kRevision, 2)));
  EXPECT_THAT(IncompleteVersions(model_, *model_.current), ElementsAre(3));
}

TEST_F(DesiredTest, AnOlderVersionStandsInForOneThatFails) {
  Add(3, VersionState::kEnd, /*failures=*/1);
  EXPECT_THAT(DesiredVersions(model_, *model_.current, Scope::kActive), ElementsAre(3, 2));
  EXPECT_THAT(DesiredVersions(model_, *model_.current, Scope::kStrict), ElementsAre(3));
  EXPECT_THAT(DesiredVersions(model_, *model_.current, Scope::kStaged), ElementsAre(3));
  model_.servables.front().attempt->failed_before = true;
  EXPECT_THAT(DesiredVersions(model_, *model_.current, Scope::kStaged), ElementsAre(3, 2));
}

TEST_F(DesiredTest, WhatBothConfigurationsWantIsDesired) {
  model_.staged = TargetOf(kRevision + 1, /*latest=*/2);
  const Desired desired = DesiredOf(model_);
  EXPECT_THAT(desired.current, ElementsAre(Pair(kRevision, 3)));
  EXPECT_THAT(desired.staged, ElementsAre(Pair(kRevision + 1, 2), Pair(kRevision + 1, 3)));
}

TEST_F(DesiredTest, NothingDiffersWhereWhatIsDesiredServes) {
  const Servable& one = Add(3, VersionState::kAvailable);
  const Diff diff = Compared();
  EXPECT_THAT(diff.publish, ElementsAre(one.id));
  EXPECT_THAT(diff.load, IsEmpty());
  EXPECT_THAT(diff.withdraw, IsEmpty());
  EXPECT_EQ(diff.next, TimePoint::max());
}

TEST_F(DesiredTest, AVersionIsWithdrawnOnlyForOneThatServes) {
  const Servable& old = Add(2, VersionState::kAvailable);
  Servable& newer = Add(3, VersionState::kStart);
  Diff diff = Compared();
  EXPECT_THAT(diff.load, ElementsAre(newer.id));
  EXPECT_THAT(diff.withdraw, IsEmpty());
  newer.state = VersionState::kAvailable;
  diff = Compared();
  EXPECT_THAT(diff.publish, ElementsAre(newer.id));
  EXPECT_THAT(diff.withdraw, ElementsAre(old.id));
}

TEST_F(DesiredTest, ARetryWaitsForItsTime) {
  Servable& one = Add(3, VersionState::kStart, /*failures=*/1);
  one.attempt->retry_at = kNow + std::chrono::seconds(1);
  const Diff diff = Compared();
  EXPECT_THAT(diff.load, IsEmpty());
  EXPECT_EQ(diff.next, one.attempt->retry_at);
}

TEST_F(DesiredTest, WhatNobodyWantsGoes) {
  const Servable& loading = Add(1, VersionState::kLoading);
  const Servable& failed = Add(2, VersionState::kEnd, /*failures=*/1);
  Add(3, VersionState::kAvailable);
  const Diff diff = Compared();
  EXPECT_THAT(diff.cancel, ElementsAre(loading.id));
  EXPECT_THAT(diff.drop, ElementsAre(failed.id));
}

TEST_F(DesiredTest, AFailureIsRememberedByRevisionVersionAndFiles) {
  Add(2, VersionState::kEnd, /*failures=*/1);
  Add(3, VersionState::kAvailable);
  const AttemptKey key{kRevision, 2, "f", 7};
  Actions actions;
  Reconcile(&model_, kNow, &actions);
  EXPECT_EQ(model_.servables.size(), 1u);
  ASSERT_EQ(model_.attempts.count(key), 1u);
  EXPECT_EQ(model_.attempts[key]->failures, 1);
  (void)model_.BeginAttempt({kRevision, 2, "f", 8});  // other files
  EXPECT_EQ(model_.attempts.count(key), 0u);
}

}  // namespace
}  // namespace floe::server
