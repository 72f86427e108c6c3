#include "server/registry/lifecycle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/registry/lifecycle_world_for_test.h"

namespace floe::server {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

VersionPolicy Policy(VersionPolicy::Kind kind, std::vector<int64_t> specific = {}) {
  VersionPolicy policy;
  policy.kind = kind;
  policy.specific = std::move(specific);
  return policy;
}

TEST(LifecycleTest, TheNewVersionIsUpBeforeTheOldOneGoes) {
  LifecycleWorld world({TestModel("m")});
  world.Put("/m", 1);
  world.Step();
  EXPECT_EQ(world.States("m"), "1 LOADING");
  EXPECT_EQ(world.Served("m"), "");
  EXPECT_FALSE(world.lifecycle().Settled());
  world.Finish();
  EXPECT_EQ(world.States("m"), "1 AVAILABLE");
  EXPECT_TRUE(world.lifecycle().Settled());

  world.Put("/m", 2);
  world.Step();
  EXPECT_EQ(world.Loads(), "") << "it is not time to look yet";
  world.Advance(seconds(1));
  EXPECT_EQ(world.States("m"), "2 LOADING, 1 AVAILABLE");
  EXPECT_EQ(world.Served("m"), "1");
  EXPECT_EQ(world.Unloads(), "");
  world.FinishLoad();
  EXPECT_EQ(world.Served("m"), "2");
  EXPECT_EQ(world.States("m"), "2 AVAILABLE, 1 UNLOADING");
  world.FinishUnload();
  EXPECT_EQ(world.States("m"), "2 AVAILABLE, 1 END");
  EXPECT_EQ(world.loaded(), 1u);
}

TEST(LifecycleTest, ABadNewVersionChangesNothingUntilItsFilesDo) {
  ServingWorld world;
  world.Put("/m", 2);
  world.Break("m", 2, kBadModel);
  world.Advance(seconds(1));
  world.Finish();
  EXPECT_EQ(world.States("m"), "2 END!, 1 AVAILABLE");
  EXPECT_EQ(world.ErrorOf("m", 2), kBadModel);
  EXPECT_EQ(world.Served("m"), "1");
  const int loads = world.finished_loads();
  for (int i = 0; i < 300; ++i) world.Advance(seconds(1));
  EXPECT_EQ(world.finished_loads(), loads) << "the same file is the same error";
  EXPECT_EQ(world.Loads(), "");

  world.Mend("m", 2);
  world.Put("/m", 2, /*stamp=*/2);
  world.Advance(seconds(1));
  world.Finish();
  EXPECT_EQ(world.States("m"), "2 AVAILABLE, 1 END");
}

// A restart must not turn a bad version that nobody noticed into an outage.
TEST(LifecycleTest, AtStartAnOlderVersionStepsInForABadOne) {
  LifecycleWorld world({TestModel("m")});
  for (const int64_t version : {1, 2, 3}) world.Put("/m", version);
  world.Break("m", 3, kBadModel);
  world.Break("m", 2, kPassing);
  world.Finish();
  EXPECT_EQ(world.States("m"), "3 END!, 2 LOADING!, 1 AVAILABLE");
  EXPECT_TRUE(world.lifecycle().Settled());
  world.Mend("m", 2);
  world.Advance(seconds(60));
  world.Finish();
  EXPECT_EQ(world.States("m"), "3 END!, 2 AVAILABLE, 1 END");
}

// Nobody would look again later.
TEST(LifecycleTest, AnOlderVersionStepsInAtOnceForOneWithoutAModel) {
  LifecycleWorld world({TestModel("m")}, WithoutPolling());
  for (const int64_t version : {1, 2}) world.Put("/m", version);
  for (const int64_t version : {3, 4}) world.PutWithoutModel("/m", version);
  world.Finish();
  EXPECT_EQ(world.States("m"), "4 END!, 3 END!, 2 AVAILABLE");
  EXPECT_TRUE(world.lifecycle().Settled());
}

TEST(LifecycleTest, RetriesWhatMayPassAsOftenAsTold) {
  Lifecycle::Options options;
  options.times.retry = seconds(10);
  options.times.max_retries = 2;
  LifecycleWorld world({TestModel("m")}, options);
  world.Put("/m", 1);
  world.Break("m", 1, kPassing);
  world.Finish();
  EXPECT_EQ(world.finished_loads(), 1);
  EXPECT_EQ(world.States("m"), "1 LOADING!");
  world.Advance(seconds(9));
  EXPECT_EQ(world.Loads(), "");
  world.Advance(seconds(1));
  EXPECT_EQ(world.Loads(), "m 1");
  world.Finish();
  EXPECT_EQ(world.States("m"), "1 LOADING!");
  world.Advance(seconds(10));
  world.Finish();
  EXPECT_EQ(world.finished_loads(), 3);
  EXPECT_EQ(world.States("m"), "1 END!");
  for (int i = 0; i < 100; ++i) world.Advance(seconds(10));
  EXPECT_EQ(world.finished_loads(), 3);
}

TEST(LifecycleTest, SaysWhenItWantsToBeAskedAgain) {
  Lifecycle::Options options;
  options.times.poll = seconds(100);
  options.times.retry = seconds(10);
  ServingWorld world(TestModel("m"), options);
  EXPECT_EQ(world.next() - world.now(), seconds(100));
  world.Put("/m", 2);
  world.Break("m", 2, kPassing);
  world.Advance(seconds(100));
  world.Finish();
  EXPECT_EQ(world.next() - world.now(), seconds(10));
  const ServingWorld once(TestModel("m"), WithoutPolling());
  EXPECT_EQ(once.next(), TimePoint::max());
  EXPECT_EQ(once.scans(), 1);
}

TEST(LifecycleTest, AHalfCopiedVersionIsLeftAlone) {
  ServingWorld world;
  for (uint64_t size = 1; size < 10; ++size) {  // it grows from scan to scan
    world.Put("/m", 2, size, Duration::zero());
    world.Advance(seconds(1));
    EXPECT_EQ(world.Loads(), "");
    EXPECT_EQ(world.States("m"), "2 START!, 1 AVAILABLE");
  }
  world.Advance(seconds(1));  // the second look at the same
  EXPECT_EQ(world.Loads(), "m 2");
  world.Finish();
  EXPECT_EQ(world.Served("m"), "2");
}

// The server of the files may think that it is earlier than it is here.
TEST(LifecycleTest, AHalfCopiedVersionIsLeftAloneThoughClocksDiffer) {
  ServingWorld world;
  for (uint64_t size = 1; size < 10; ++size) {
    world.Put("/m", 2, size, seconds(59));
    world.Advance(seconds(1));
    EXPECT_EQ(world.Loads(), "");
  }
  world.Advance(seconds(1));
  EXPECT_EQ(world.Loads(), "m 2");
}

TEST(LifecycleTest, WithoutPollingFilesAreTakenForComplete) {
  LifecycleWorld world({TestModel("m")}, WithoutPolling());
  world.Put("/m", 1, 1, Duration::zero());
  world.Finish();
  EXPECT_EQ(world.Served("m"), "1");
}

TEST(LifecycleTest, AtStartOldFilesNeedNoSecondLook) {
  LifecycleWorld world({TestModel("old"), TestModel("new")});
  world.Put("/old", 1, 1, std::chrono::minutes(1));
  world.Put("/new", 1, 1, seconds(0));
  world.Finish();
  EXPECT_EQ(world.Served("old"), "1");
  EXPECT_EQ(world.Served("new"), "");
  EXPECT_FALSE(world.lifecycle().Settled());
  world.Advance(seconds(1));
  world.Finish();
  EXPECT_EQ(world.Served("new"), "1");
  EXPECT_TRUE(world.lifecycle().Settled());
}

TEST(LifecycleTest, OnlyVersionsThatMayBeServedAreLookedInto) {
  LifecycleWorld world({TestModel("m")});
  for (const int64_t version : {1, 2, 3, 4, 5}) world.Put("/m", version);
  world.Break("m", 5, kBadModel);
  world.Step();
  EXPECT_THAT(world.TakeScanned(), ElementsAre(5));
  world.Finish();
  EXPECT_THAT(world.TakeScanned(), ElementsAre(4, 5)) << "4 at once, not at the next poll";
  EXPECT_EQ(world.Served("m"), "4");
  world.Advance(seconds(1));
  EXPECT_THAT(world.TakeScanned(), ElementsAre(5)) << "it may be mended";
  world.Put("/m", 6);
  world.Advance(seconds(1));
  world.Finish();
  EXPECT_EQ(world.Served("m"), "6");
  world.TakeScanned();
  for (int i = 0; i < 10; ++i) world.Advance(seconds(1));
  EXPECT_THAT(world.TakeScanned(), ElementsAre()) << "it is there";
}

TEST(LifecycleTest, WithoutPollingTheFallbackIsLookedIntoAllTheSame) {
  LifecycleWorld world({TestModel("m")}, WithoutPolling());
  for (const int64_t version : {1, 2, 3}) world.Put("/m", version);
  world.Break("m", 3, kBadModel);
  world.Break("m", 2, kBadModel);
  world.Finish();
  EXPECT_EQ(world.Served("m"), "1");
  const int scans = world.scans();
  for (int i = 0; i < 10; ++i) world.Advance(seconds(1));
  EXPECT_EQ(world.scans(), scans);
}

// What a server that starts waits for, and what it ends for where it may not go on.
TEST(LifecycleTest, AModelFailsWhenNothingIsLeftToTry) {
  const auto failed = [](LifecycleWorld& world) {
    return HasFailed(world.lifecycle().models().at("m"));
  };
  Lifecycle::Options options;
  options.times.max_retries = 1;
  LifecycleWorld gone({TestModel("m")}, options);
  EXPECT_FALSE(failed(gone)) << "nobody has looked";
  gone.Finish();
  EXPECT_TRUE(failed(gone));
  gone.Put("/m", 1);
  gone.Advance(seconds(1));
  EXPECT_FALSE(failed(gone));
  EXPECT_FALSE(gone.lifecycle().Settled());
  gone.Finish();
  EXPECT_FALSE(failed(gone));
  gone.Unmount("/m");
  gone.Advance(seconds(1));
  EXPECT_FALSE(failed(gone)) << "it serves";

  LifecycleWorld passing({TestModel("m")}, options);
  passing.Put("/m", 1);
  passing.Break("m", 1, kPassing);
  passing.Finish();
  EXPECT_TRUE(passing.lifecycle().Settled());
  EXPECT_FALSE(failed(passing)) << "it is tried again";
  passing.Advance(seconds(60));
  passing.Finish();
  EXPECT_TRUE(failed(passing));

  LifecycleWorld older({TestModel("m")}, options);
  for (const int64_t version : {1, 2}) older.Put("/m", version);
  older.Break("m", 2, kBadModel);
  older.Step();
  older.FinishLoad();
  EXPECT_FALSE(failed(older)) << "the older one is being loaded";
  EXPECT_FALSE(older.lifecycle().Settled());
}

// A scan that fails may pass, too.
TEST(LifecycleTest, APlaceIsGivenUpAfterAsManyLooksAsLoads) {
  Lifecycle::Options options;
  options.times.max_retries = 2;
  LifecycleWorld world({TestModel("m")}, options);
  world.Fail("/m", kPassing);
  for (int looks = 1; looks <= 2; ++looks) {
    world.Advance(seconds(1));
    EXPECT_FALSE(HasFailed(world.lifecycle().models().at("m"))) << looks;
  }
  (void)world.lifecycle().TakeChanges();
  world.Advance(seconds(1));
  EXPECT_TRUE(HasFailed(world.lifecycle().models().at("m")));
  EXPECT_TRUE(world.lifecycle().TakeChanges().any()) << "whoever waits for it is told";
}

TEST(LifecycleTest, AScanStepsOnlyItsOwnModel) {
  constexpr int kModels = 50;
  std::vector<ModelConfig> models;
  models.reserve(kModels);
  for (int i = 0; i < kModels; ++i) models.push_back(TestModel("m" + std::to_string(i)));
  Lifecycle lifecycle(models, Lifecycle::Options());
  TimePoint now(std::chrono::hours(1));
  for (int poll = 0; poll < 3; ++poll) {
    std::vector<Lifecycle::Ended> ended;
    const Work work = lifecycle.Step(now, &ended);
    ASSERT_EQ(work.scans.size(), kModels);
    const int64_t before = lifecycle.stepped();
    for (const ScanAction& scan : work.scans) {
      lifecycle.Scanned(scan.model, scan.ticket, {absl::NotFoundError("nothing yet")}, now);
      EXPECT_TRUE(lifecycle.Step(now, &ended).scans.empty());
    }
    EXPECT_EQ(lifecycle.stepped() - before, kModels);
    now += seconds(1);
  }
}

TEST(LifecycleTest, AVersionThatServesIsEnoughToBeSettled) {
  ServingWorld world;
  world.Put("/m", 2, 1, Duration::zero());
  world.Advance(seconds(1));
  EXPECT_EQ(world.States("m"), "2 START!, 1 AVAILABLE");
  EXPECT_TRUE(world.lifecycle().Settled());
}

TEST(LifecycleTest, ARemovedVersionGoesAndTheOneBelowComesFirst) {
  LifecycleWorld world({TestModel("m")});
  world.Put("/m", 1);
  world.Put("/m", 2);
  world.Finish();
  EXPECT_EQ(world.Served("m"), "2");
  world.Delete("/m", 2);
  world.Advance(seconds(1));
  EXPECT_EQ(world.Loads(), "m 1");
  EXPECT_EQ(world.Served("m"), "2");
  world.Finish();
  EXPECT_EQ(world.Served("m"), "1");
  EXPECT_EQ(world.loaded(), 1u);
}

TEST(LifecycleTest, WhatIsServedStaysWhenItsPlaceIsEmptyOrGone) {
  ServingWorld world;
  world.Delete("/m", 1);
  world.Advance(seconds(1));
  world.Finish();
  EXPECT_EQ(world.Served("m"), "1");
  world.Unmount("/m");
  world.Advance(seconds(1));
  world.Finish();
  EXPECT_EQ(world.Served("m"), "1");
  world.Put("/m", 1);
  world.Advance(seconds(1));
  EXPECT_EQ(world.Loads(), "") << "it is there already";
}

TEST(LifecycleTest, PolicyAllAndSpecific) {
  ModelConfig all = TestModel("all", "/m"), some = TestModel("some", "/m");
  all.versions = Policy(VersionPolicy::Kind::kAll);
  some.versions = Policy(VersionPolicy::Kind::kSpecific, {1, 7});
  LifecycleWorld world({all, some});
  for (const int64_t version : {1, 2, 3}) world.Put("/m", version);
  world.Finish();
  EXPECT_EQ(world.Served("all"), "3, 2, 1");
  EXPECT_EQ(world.States("some"), "7 END!, 1 AVAILABLE");
  EXPECT_THAT(std::string(world.ErrorOf("some", 7).message()),
              AllOf(HasSubstr("version 7"), HasSubstr("it holds 3, 2, 1")));
  world.Put("/m", 7);
  world.Delete("/m", 2);
  world.Advance(seconds(1));
  world.Finish();
  EXPECT_EQ(world.Served("all"), "7, 3, 1");
  EXPECT_EQ(world.Served("some"), "7, 1");
}

TEST(LifecycleTest, ASpecificVersionGoesWithItsDirectoryUnlessItIsTheLast) {
  ModelConfig model = TestModel("m");
  model.versions = Policy(VersionPolicy::Kind::kSpecific, {1, 2});
  LifecycleWorld world({model});
  for (const int64_t version : {1, 2, 3}) world.Put("/m", version);
  world.Finish();
  EXPECT_EQ(world.Served("m"), "2, 1");
  world.Delete("/m", 1);
  world.Advance(seconds(1));
  world.Finish();
  EXPECT_EQ(world.States("m"), "2 AVAILABLE, 1 END!");
  EXPECT_THAT(std::string(world.ErrorOf("m", 1).message()), HasSubstr("there is no version 1"));
  EXPECT_EQ(world.loaded(), 1u);
  world.Delete("/m", 2);
  world.Advance(seconds(1));
  world.Finish();
  EXPECT_EQ(world.Served("m"), "2") << "nothing takes its place";
  world.Put("/m", 1);
  world.Advance(seconds(1));
  world.Finish();
  EXPECT_EQ(world.Served("m"), "1");
}

TEST(LifecycleTest, OnlyTheLastVersionsThatEndedAreRemembered) {
  LifecycleWorld world({TestModel("m")});
  for (int64_t version = 1; version <= 10; ++version) {
    world.Put("/m", version);
    world.Advance(seconds(1));
    world.Finish();
  }
  EXPECT_EQ(world.States("m"), "10 AVAILABLE, 9 END, 8 END, 7 END");
}

TEST(LifecycleTest, ALoadThatNobodyWantsAnyMoreIsNotBegun) {
  LifecycleWorld world({TestModel("m")});
  world.Put("/m", 1);
  world.Step();
  EXPECT_EQ(world.Loads(), "m 1");
  world.Put("/m", 2);
  world.Advance(seconds(1));
  EXPECT_EQ(world.Loads(), "m 1, m 2");
  world.Finish();
  EXPECT_EQ(world.States("m"), "2 AVAILABLE") << "1 was cancelled, which is no failure";
  EXPECT_EQ(world.loaded(), 1u);
}

class MemoryRefused : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Retries, MemoryRefused, testing::Values(0, 5));

TEST_P(MemoryRefused, ComesWhenMemoryIsFreed) {
  Lifecycle::Options options;
  options.times.max_retries = GetParam();
  LifecycleWorld world({TestModel("a"), TestModel("b")}, options);
  world.Put("/a", 1);
  world.Put("/b", 1);
  world.Break("b", 1, absl::ResourceExhaustedError("too much"));
  world.Finish();
  EXPECT_EQ(world.States("b"), GetParam() == 0 ? "1 END!" : "1 LOADING!");
  world.Mend("b", 1);
  world.Put("/a", 2);
  world.Advance(seconds(1));
  EXPECT_EQ(world.Loads(), "a 2");
  world.FinishLoad();
  EXPECT_EQ(world.Loads(), "");
  world.FinishUnload();
  EXPECT_EQ(world.Loads(), "b 1") << "without waiting for its next try";
}

}  // namespace
}  // namespace floe::server
