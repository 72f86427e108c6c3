#include "server/registry/change_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <string>

#include "server/registry/lifecycle_world_for_test.h"
#include "server/registry/local_registry_for_test.h"

namespace floe::server {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// ---- when a Lifecycle scans what is watched ----

// How often `world` scans in so many polls.
int ScansIn(int polls, LifecycleWorld* world) {
  const int before = world->scans();
  for (int i = 0; i < polls; ++i) world->Advance(seconds(1));
  return world->scans() - before;
}

class WatchedWorld : public ServingWorld {
 public:
  explicit WatchedWorld(const ModelConfig& model = TestModel("m")) : ServingWorld(model) {
    SetWatching(true);
    Advance(seconds(1));
  }
};

TEST(WatchedLifecycle, IsScannedWhenItIsTold) {
  WatchedWorld world;
  EXPECT_EQ(ScansIn(25, &world), 0);
  world.Tell("m");
  EXPECT_EQ(world.scans(), 3) << "at once";
  EXPECT_EQ(ScansIn(25, &world), 0) << "there was nothing";
  world.Tell("another");
  EXPECT_EQ(world.scans(), 3);
}

TEST(WatchedLifecycle, IsScannedEveryMinuteThoughNothingIsTold) {
  WatchedWorld world;
  EXPECT_EQ(ScansIn(600, &world) / 10, 1);
  world.Put("/m", 2);
  (void)ScansIn(60, &world);
  EXPECT_EQ(world.Loads(), "m 2");
}

// Whatever has been said of its files: it is at rest once all is loaded.
TEST(WatchedLifecycle, ACopyIsScannedUntilItIsComplete) {
  WatchedWorld world;
  world.Put("/m", 2, 1, Duration::zero());
  world.Tell("m");
  for (uint64_t size = 2; size < 10; ++size) {
    world.Put("/m", 2, size, Duration::zero());
    EXPECT_EQ(ScansIn(1, &world), 1);
    EXPECT_EQ(world.States("m"), "2 START!, 1 AVAILABLE");
  }
  EXPECT_EQ(ScansIn(1, &world), 1);
  EXPECT_EQ(world.Loads(), "m 2");
  EXPECT_EQ(ScansIn(5, &world), 5) << "while it loads";
  world.Finish();
  EXPECT_EQ(world.Served("m"), "2");
  EXPECT_EQ(ScansIn(25, &world), 2) << "the first sees that 1 is not loaded any more";
}

TEST(WatchedLifecycle, AFailureIsScannedAtEachPoll) {
  WatchedWorld world;
  world.Break("m", 2, kBadModel);
  world.Put("/m", 2);
  world.Tell("m");
  world.Finish();
  EXPECT_EQ(world.States("m"), "2 END!, 1 AVAILABLE");
  EXPECT_EQ(ScansIn(25, &world), 25) << "its files may be mended";
  world.Delete("/m", 2);
  (void)ScansIn(2, &world);
  EXPECT_EQ(ScansIn(20, &world), 0);
  world.Unmount("/m");
  world.Tell("m");
  EXPECT_EQ(ScansIn(25, &world), 25) << "nobody tells what comes where there is nothing";
}

// What is told while a scan is under way may be later than what the scan has seen.
TEST(WatchedLifecycle, IsScannedOnceMoreAfterAScanThatMayHaveMissedIt) {
  WatchedWorld world;
  world.Hang("/m");
  world.Tell("m");
  ASSERT_EQ(world.hung_scans(), 1u);
  world.Tell("m");
  world.Recover("/m");
  EXPECT_EQ(ScansIn(25, &world), 1);
}

TEST(WatchedLifecycle, WhatCannotBeWatchedIsScannedAtEachPoll) {
  WatchedWorld world;
  world.SetWatching(false);
  world.Tell("m");
  const int before = world.watches_tried();
  EXPECT_EQ(ScansIn(50, &world), 50);
  EXPECT_EQ(world.watches_tried(), before) << "it costs more than a scan";
  world.SetWatching(true);
  (void)ScansIn(10, &world);
  EXPECT_EQ(ScansIn(20, &world), 0);
}

TEST(WatchedLifecycle, AReloadKeepsWhatIsWatched) {
  WatchedWorld world;
  const int before_reload = world.scans();
  const int64_t same = world.Reload({TestModel("m")});
  EXPECT_TRUE(world.Outcome(same).ok());
  EXPECT_EQ(world.scans(), before_reload);
  EXPECT_EQ(ScansIn(25, &world), 0);
  ModelConfig named = TestModel("m");
  named.version_labels = {{"stable", 1}};
  const int64_t label = world.Reload({named});
  EXPECT_TRUE(world.Outcome(label).ok());
  EXPECT_EQ(world.watches_tried(), 1) << "once and for all";
  EXPECT_EQ(ScansIn(25, &world), 0);
  world.Put("/n", 1);
  const int64_t elsewhere = world.Reload({TestModel("m", "/n")});
  world.Finish();
  EXPECT_TRUE(world.Outcome(elsewhere).ok());
  const int before = world.watches_tried();
  EXPECT_EQ(ScansIn(25, &world), 1);
  EXPECT_EQ(world.watches_tried(), before + 1);
}

TEST(WatchedLifecycle, AReloadFindsWhatHasBeenTold) {
  WatchedWorld world;
  world.Put("/m", 2);
  world.lifecycle().FilesChanged({"m"}, world.now());
  const int64_t reload = world.Reload({TestModel("m")});
  EXPECT_FALSE(world.Ended(reload));
  world.Finish();
  EXPECT_TRUE(world.Outcome(reload).ok());
  EXPECT_EQ(world.Served("m"), "2");
}

TEST(WatchedLifecycle, AReloadStepsOnlyWhatItChanges) {
  constexpr int kModels = 50;
  std::vector<ModelConfig> models;
  models.reserve(kModels + 1);
  for (int i = 0; i < kModels; ++i) models.push_back(TestModel("m" + std::to_string(i), "/m"));
  LifecycleWorld world(models);
  world.SetWatching(true);
  world.Put("/m", 1);
  world.Finish();
  for (int i = 0; i < 2 * kModels; ++i)
    world.Advance(seconds(1));  // one place is scanned at a time
  EXPECT_LE(ScansIn(10, &world), kModels / 2);
  models.push_back(TestModel("new"));
  world.Put("/new", 1);
  const int64_t stepped = world.lifecycle().stepped();
  const int64_t added = world.Reload(models);
  world.Finish();
  EXPECT_TRUE(world.Outcome(added).ok());
  EXPECT_EQ(world.Served("new"), "1");
  EXPECT_LT(world.lifecycle().stepped() - stepped, 20);
  models.erase(models.begin());
  const int64_t removed = world.Reload(models);
  world.Finish();
  EXPECT_TRUE(world.Outcome(removed).ok());
  EXPECT_EQ(world.States("m0"), "none");
  EXPECT_EQ(world.Served("m1"), "1");
}

// ---- with files ----

class ChangeWatchTest : public RegistryTest {
 protected:
  ChangeWatchTest() {
    options_.clock = &clock_;
    options_.scan_with = [this](const std::string& path, const VersionsToScan& scan) {
      (asked_ > 0 ? watched_scans_ : scans_) += 1;
      return ScanVersions(path, scan);
    };
    options_.watch_with = [this] {
      return FileWatcher::Create([this](int64_t) {
        ++asked_;
        return true;
      });
    };
  }
  // Serves version 1; the next scans are those of a model that is at rest.
  void Serve() {
    Write("m/1/frozen.pb", TimesGraph(1));
    registry_ = std::make_unique<LocalRegistry>(std::vector{Config("m", "m")}, options_, &health_);
    ASSERT_TRUE(registry_->StartLoading().ok());
  }
  void Poll() {
    clock_.Advance(seconds(1));
    registry_->Wake();
  }
  bool PollUntil(const std::function<bool()>& condition) {
    return Eventually([&] {
      Poll();
      return condition();
    });
  }
  bool IsNewest(int64_t version) {
    const auto served = registry_->Acquire("m", {});
    return served.ok() && (*served)->model()->info().version == version;
  }

  FakeClock clock_;
  LocalRegistry::Options options_;
  std::atomic<int> asked_{0}, scans_{0}, watched_scans_{0};
  std::unique_ptr<LocalRegistry> registry_;
};

TEST_F(ChangeWatchTest, ANewVersionIsFoundAtTheNextPoll) {
  Serve();
  ASSERT_TRUE(PollUntil([&] { return watched_scans_ == 1; }));
  for (int i = 0; i < 20; ++i) Poll();
  EXPECT_EQ(watched_scans_, 1);
  Write("copy/frozen.pb", TimesGraph(2));
  std::filesystem::rename(root_ + "/copy", root_ + "/m/2");
  Poll();
  ASSERT_TRUE(Eventually([&] { return watched_scans_ == 2; }));
  ASSERT_TRUE(PollUntil([&] { return IsNewest(2); }));
}

TEST_F(ChangeWatchTest, AFileThatIsOverwrittenIsFoundAtTheNextPoll) {
  Serve();
  ASSERT_TRUE(PollUntil([&] { return watched_scans_ == 1; }));
  Write("m/1/frozen.pb", TimesGraph(3));
  Poll();
  ASSERT_TRUE(Eventually([&] {
    const auto status = registry_->Status("m", {});
    return status.ok() && !status->at(0).error.ok();
  }));
}

class ChangeWatchAlone : public RegistryTest {
 protected:
  ScanAction Action() {
    ScanAction action;
    action.model = "m";
    action.base_path = root_ + "/m";
    action.versions.loaded_files[1] = Write("m/1/frozen.pb", "");
    action.watch = watch_;
    return action;
  }
  const std::shared_ptr<FileWatch> watch_ = std::make_shared<FileWatch>();
};

TEST_F(ChangeWatchAlone, TellsOfChangesOncePerPoll) {
  ChangeWatch watch(seconds(2), nullptr);
  EXPECT_EQ(watch.next(), TimePoint::max());
  watch.Start();
  TimePoint now(std::chrono::hours(1));
  EXPECT_THAT(watch.TakeChanged(now, false), IsEmpty());
  EXPECT_EQ(watch.next(), now + seconds(2));
  ChangeWatch any(seconds(2), [] { return FileWatcher::Create([](int64_t) { return true; }); });
  any.Start();
  ASSERT_TRUE(any.Watch(Action()));
  EXPECT_THAT(any.TakeChanged(now, false), IsEmpty());
  Write("m/1/frozen.pb", "overwritten");
  EXPECT_THAT(any.TakeChanged(now + seconds(1), false), IsEmpty());
  EXPECT_THAT(any.TakeChanged(now + seconds(2), false), ElementsAre("m"));
  Write("m/2/frozen.pb", "");
  EXPECT_THAT(any.TakeChanged(now + seconds(3), true), ElementsAre("m")) << "for a reload";
  EXPECT_EQ(any.next(), now + seconds(4));
}

TEST_F(ChangeWatchAlone, WhatTheSystemCannotWatchIsLeftToScans) {
  ScanAction action = Action();
  ChangeWatch elsewhere(seconds(1),
                        [] { return FileWatcher::Create([](int64_t) { return false; }); });
  elsewhere.Start();
  EXPECT_FALSE(elsewhere.Watch(action));
  ChangeWatch none(seconds(1), [] { return absl::ResourceExhaustedError("no watches"); });
  none.Start();
  EXPECT_FALSE(none.Watch(action));
  EXPECT_EQ(none.next(), TimePoint::max());
  ChangeWatch unasked(seconds(1), nullptr);
  unasked.Start();
  action.watch = nullptr;
  EXPECT_FALSE(unasked.Watch(action));
}

TEST(ChangeWatch, WatchesNothingWithoutPollingOrWithRareScans) {
  for (const Duration poll : {Duration(0), Duration(seconds(60))}) {
    bool asked = false;
    ChangeWatch watch(poll, [&]() -> absl::StatusOr<std::shared_ptr<FileWatcher>> {
      asked = true;
      return absl::UnavailableError("");
    });
    watch.Start();
    EXPECT_FALSE(asked);
    EXPECT_EQ(watch.next(), TimePoint::max());
    ScanAction action;
    action.watch = std::make_shared<FileWatch>();
    EXPECT_FALSE(watch.Watch(action));
  }
}

}  // namespace
}  // namespace floe::server
