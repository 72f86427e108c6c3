// Labels in reloads, by way of Lifecycle.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/registry/lifecycle_world_for_test.h"

namespace floe::server {
namespace {

TEST(Reload, LabelsMoveOnlyToWhatIsAvailable) {
  ModelConfig config = TestModel("m");
  config.versions.latest = 2;
  LifecycleWorld world({config}, WithoutPolling());
  world.Put("/m", 1);
  world.Put("/m", 2);
  world.Finish();
  ModelConfig labelled = config;
  labelled.version_labels = {{"stable", 1}, {"canary", 2}};
  EXPECT_TRUE(world.Outcome(world.Reload({labelled})).ok());
  ModelConfig wrong = labelled;
  wrong.version_labels["stable"] = 3;
  const int64_t refused = world.Reload({wrong});
  EXPECT_EQ(world.Outcome(refused).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(world.lifecycle().config().models[0].version_labels.at("stable"), 1);
  // A version that comes with the same reload will do.
  world.Put("/m", 3);
  const int64_t granted = world.Reload({wrong});
  world.Finish();
  EXPECT_TRUE(world.Outcome(granted).ok()) << world.Outcome(granted);
  EXPECT_EQ(world.Served("m"), "3, 2");
  // A label that stays may lead to a version that is gone.
  EXPECT_TRUE(world.Outcome(world.Reload({wrong})).ok());
}

TEST(Reload, LabelsDoNotLeadToWhatTheSameReloadUnloads) {
  ModelConfig all = TestModel("m");
  all.versions.kind = VersionPolicy::Kind::kAll;
  ModelConfig labelled = all;
  labelled.version_labels = {{"canary", 1}};
  LifecycleWorld world({all}, WithoutPolling());
  for (const int64_t version : {1, 2, 3}) world.Put("/m", version);
  world.Finish();
  // Another place, which has no version 1.
  ModelConfig moved = labelled;
  moved.base_path = "/other";
  for (const int64_t version : {2, 3}) world.Put("/other", version);
  const auto refused = [&] {
    const int64_t ticket = world.Reload({moved});
    world.Finish();
    const absl::Status outcome = world.Outcome(ticket);
    EXPECT_EQ(outcome.code(), absl::StatusCode::kFailedPrecondition) << outcome;
    EXPECT_EQ(world.Unloads(), "");
    EXPECT_EQ(world.Served("m"), "3, 2, 1");
  };
  refused();
  // A label that has been there before, too.
  EXPECT_TRUE(world.Outcome(world.Reload({labelled})).ok());
  refused();  // for `resource` before anything is taken down
}

// `latest` serves what a label names beside the newest: found by itself, by a reload, or at a
// start.
TEST(Reload, LabelsKeepTheirVersions) {
  ModelConfig all = TestModel("m");
  all.versions.kind = VersionPolicy::Kind::kAll;
  ModelConfig latest = TestModel("m");
  latest.version_labels = {{"canary", 1}};
  LifecycleWorld world({all});
  for (const int64_t version : {1, 2, 3}) world.Put("/m", version);
  world.Finish();
  const int64_t kept = world.Reload({latest});
  world.Finish();
  EXPECT_TRUE(world.Outcome(kept).ok()) << world.Outcome(kept);
  EXPECT_EQ(world.Served("m"), "3, 1");
  world.Put("/m", 4);
  world.Advance(std::chrono::seconds(1));
  world.Finish();
  EXPECT_EQ(world.Served("m"), "4, 1");
  LifecycleWorld again({latest});
  for (const int64_t version : {1, 2, 3}) again.Put("/m", version);
  again.Finish();
  EXPECT_EQ(again.Served("m"), "3, 1");
  // Without the label it goes as others do.
  const int64_t freed = world.Reload({TestModel("m")});
  world.Finish();
  EXPECT_TRUE(world.Outcome(freed).ok()) << world.Outcome(freed);
  EXPECT_EQ(world.Served("m"), "4");
}

TEST(Reload, ALabelThatStaysDoesNotKeepNewVersionsAway) {
  ModelConfig labelled = TestModel("m");
  labelled.version_labels = {{"stable", 1}};
  ServingWorld world(labelled, WithoutPolling());
  world.Put("/m", 2);
  const int64_t ticket = world.Reload({labelled});
  world.Finish();
  EXPECT_TRUE(world.Outcome(ticket).ok()) << world.Outcome(ticket);
  EXPECT_EQ(world.Served("m"), "2, 1");
}

// `latest` serves it in the place of a newer one that fails.
TEST(Reload, LabelsMayLeadToTheVersionThatStandsIn) {
  ModelConfig labelled = TestModel("m");
  labelled.version_labels = {{"stable", 1}};
  LifecycleWorld world({labelled});
  for (const int64_t version : {1, 2}) world.Put("/m", version);
  world.Break("m", 2, kBadModel);
  world.Finish();
  EXPECT_EQ(world.Served("m"), "1");
  EXPECT_TRUE(world.Outcome(world.Reload({labelled})).ok());
}

TEST(Reload, ABadVersionDoesNotKeepLabelsFromMoving) {
  ModelConfig model = TestModel("m");
  model.versions.kind = VersionPolicy::Kind::kAll;
  LifecycleWorld world({model});
  for (const int64_t version : {1, 2, 3, 4}) world.Put("/m", version);
  world.Break("m", 4, kBadModel);
  world.Finish();
  EXPECT_EQ(world.States("m"), "4 END!, 3 AVAILABLE, 2 AVAILABLE, 1 AVAILABLE");
  model.version_labels = {{"s", 2}};
  const int64_t labelled = world.Reload({model});
  EXPECT_TRUE(world.Outcome(labelled).ok()) << world.Outcome(labelled);
  model.version_labels = {{"s", 4}};
  EXPECT_EQ(world.Outcome(world.Reload({model})).code(), absl::StatusCode::kFailedPrecondition);
  model.versions.kind = VersionPolicy::Kind::kLatest;
  model.version_labels = {{"s", 3}};
  EXPECT_TRUE(world.Outcome(world.Reload({model})).ok());
  EXPECT_EQ(world.Served("m"), "3");
}

}  // namespace
}  // namespace floe::server
