// Reloads, by way of Lifecycle.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/rounds_for_test.h"
#include "server/registry/lifecycle_world_for_test.h"

namespace floe::server {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Reload, AllOfItComesAtOnceAndWhatIsGoneLeaves) {
  LifecycleWorld world({TestModel("a"), TestModel("b")});
  for (const char* path : {"/a", "/b", "/c"}) world.Put(path, 1);
  world.Finish();
  EXPECT_EQ(world.lifecycle().config().generation, 1);

  const int64_t ticket = world.Reload({TestModel("a"), TestModel("c")});
  EXPECT_EQ(world.Loads(), "c 1");
  EXPECT_FALSE(world.Ended(ticket));
  EXPECT_EQ(world.States("c"), "none") << "it is not active yet";
  EXPECT_EQ(world.Served("b"), "1");
  world.FinishLoad();
  EXPECT_TRUE(world.Outcome(ticket).ok()) << world.Outcome(ticket);
  EXPECT_EQ(world.Served("c"), "1");
  EXPECT_EQ(world.States("b"), "none");
  EXPECT_EQ(world.Served("b"), "") << "requests find it no longer";
  EXPECT_EQ(world.Unloads(), "b");
  world.Finish();
  EXPECT_EQ(world.lifecycle().config().generation, 2);
  EXPECT_TRUE(world.lifecycle().config().last_error.ok());
  ASSERT_EQ(world.lifecycle().config().models.size(), 2u);
  EXPECT_EQ(world.lifecycle().config().models[1].name, "c");
  EXPECT_EQ(world.finished_loads(), 3) << "what stays is not loaded again";
  EXPECT_EQ(world.loaded(), 2u);
}

TEST(Reload, OneErrorAndNothingChanges) {
  LifecycleWorld world({TestModel("a")});
  for (const char* path : {"/a", "/b", "/c"}) world.Put(path, 1);
  world.Finish();
  world.Break("c", 1, kBadModel);
  const int64_t ticket = world.Reload({TestModel("b"), TestModel("c")});
  world.Finish();
  EXPECT_EQ(world.Outcome(ticket).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(world.Outcome(ticket).message()),
              AllOf(HasSubstr("not changed"), HasSubstr("model 'c' version 1"),
                    HasSubstr("this is no model")));
  EXPECT_EQ(world.Served("a"), "1");
  EXPECT_EQ(world.States("b"), "none");
  EXPECT_EQ(world.loaded(), 1u) << "what was loaded for it is gone again";
  EXPECT_EQ(world.lifecycle().config().generation, 1);
  EXPECT_EQ(world.lifecycle().config().last_error, world.Outcome(ticket));
  EXPECT_EQ(world.lifecycle().config().models[0].name, "a");
}

TEST(Reload, AttemptsAreNoted) {
  LifecycleWorld world({TestModel("a")});
  for (const char* path : {"/a", "/b", "/c"}) world.Put(path, 1);
  world.Finish();
  EXPECT_TRUE(world.lifecycle().config().changes.empty());
  world.Break("c", 1, kBadModel);
  world.Reload({TestModel("b")});
  world.Finish();
  world.Reload({TestModel("c")});
  world.Finish();
  const ConfigState& config = world.lifecycle().config();
  ASSERT_EQ(config.changes.size(), 2u);
  EXPECT_EQ(config.changes[0].generation, 2);
  EXPECT_EQ(config.changes[0].who, "the server");
  EXPECT_THAT(config.changes[0].what, AllOf(HasSubstr("a"), HasSubstr("b")));
  EXPECT_TRUE(config.changes[0].error.ok());
  EXPECT_EQ(config.changes[1].generation, 2) << "that of before stays active";
  EXPECT_EQ(config.changes[1].error, config.last_error);
  ConfigState full;
  for (int i = 0; i < 100; ++i) full.Note({i, {}, "", "", {}});
  ASSERT_EQ(full.changes.size(), ConfigState::kMostChanges);
  EXPECT_EQ(full.changes.back().generation, 99);
}

TEST(Reload, MistakesAreFoundBeforeAnythingIsLoaded) {
  ServingWorld world(TestModel("a"));
  ModelConfig none = TestModel("b"), empty = TestModel("c");
  none.versions.latest = 0;
  empty.versions.kind = VersionPolicy::Kind::kSpecific;
  const int64_t ticket =
      world.Reload({none, empty, TestModel("d"), TestModel("d"), TestModel("floe.probe")});
  EXPECT_EQ(world.Outcome(ticket).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(world.Outcome(ticket).message()), HasSubstr("'d' is given twice"));
  const int64_t second = world.Reload({none, empty, TestModel("floe.probe")});
  EXPECT_THAT(std::string(world.Outcome(second).message()),
              AllOf(HasSubstr("'b'"), HasSubstr("'c'"), HasSubstr("floe.probe")));
  EXPECT_EQ(world.scans(), 1);
  EXPECT_EQ(world.Served("a"), "1");
}

TEST(Reload, MissingPlacesAndVersionsAreErrorsThatNameTheModel) {
  ServingWorld world(TestModel("a"), WithoutPolling());
  const int64_t gone = world.Reload({TestModel("a"), TestModel("gone")});
  EXPECT_EQ(world.Outcome(gone).code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(world.Outcome(gone).message()), HasSubstr("model 'gone'"));
  ModelConfig specific = TestModel("a");
  specific.versions.kind = VersionPolicy::Kind::kSpecific;
  specific.versions.specific = {1, 2};
  const int64_t missing = world.Reload({specific});
  EXPECT_EQ(world.Outcome(missing).code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(world.Outcome(missing).message()),
              AllOf(HasSubstr("model 'a' version 2"), HasSubstr("it holds 1"),
                    HasSubstr("copy the version there")));
  EXPECT_EQ(world.Served("a"), "1");
}

TEST(Reload, IsOverAtItsDeadlineWhateverHangs) {
  LifecycleWorld world({TestModel("a")});
  world.Put("/a", 1);
  world.Put("/b", 1);
  world.Finish();
  const int64_t ticket = world.Reload({TestModel("b")}, seconds(5));
  EXPECT_LE(world.next(), world.now() + seconds(5));
  world.Advance(seconds(4));
  EXPECT_FALSE(world.Ended(ticket));
  world.Advance(seconds(1));
  EXPECT_EQ(world.Outcome(ticket).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(world.Outcome(ticket).message()),
              AllOf(HasSubstr("not changed"), HasSubstr("model 'b': version 1 is being loaded")));
  EXPECT_EQ(world.Served("a"), "1");
  world.FinishLoad();  // too late
  EXPECT_EQ(world.States("b"), "none");
  world.Finish();
  EXPECT_EQ(world.loaded(), 1u);
}

TEST(Reload, APlaceThatHangsIsLookedAtOnceAtATime) {
  ServingWorld world;
  world.Put("/x", 1);
  world.Hang("/x");
  for (int i = 0; i < 5; ++i) {
    const int64_t late =
        world.Reload({TestModel("m"), TestModel(absl::StrCat("x", i), "/x")}, seconds(5));
    world.Advance(seconds(5));
    EXPECT_EQ(world.Outcome(late).code(), absl::StatusCode::kDeadlineExceeded);
  }
  EXPECT_EQ(world.hung_scans(), 1u);
  // Who asks last gets an answer of its own, as does everybody else with the same place.
  world.Put("/x", 2);
  const int64_t ticket = world.Reload({TestModel("y", "/x"), TestModel("z", "/x")});
  EXPECT_EQ(world.hung_scans(), 1u);
  world.Recover("/x");
  world.Finish();
  EXPECT_TRUE(world.Outcome(ticket).ok()) << world.Outcome(ticket);
  EXPECT_EQ(world.Served("y"), "2");
  EXPECT_EQ(world.Served("z"), "2");
}

TEST(Reload, AnUnchangedModelWhosePlaceHangsDoesNotHoldUpTheOthers) {
  LifecycleWorld world({TestModel("m"), TestModel("dead")});
  world.Put("/m", 1);
  world.Put("/n", 1);
  world.Hang("/dead");
  world.Finish();
  world.Hang("/m");
  const int64_t ticket = world.Reload({TestModel("m"), TestModel("dead"), TestModel("n")});
  world.Finish();
  EXPECT_FALSE(world.Ended(ticket)) << "there may be a new version";
  EXPECT_EQ(world.next() - world.now(), seconds(1)) << "the next look";
  world.Advance(seconds(4));
  EXPECT_FALSE(world.Ended(ticket));
  world.Advance(seconds(1));
  EXPECT_TRUE(world.Outcome(ticket).ok()) << world.Outcome(ticket);
  EXPECT_EQ(world.Served("m"), "1");
  EXPECT_EQ(world.Served("n"), "1");
  // What is new, or another, has to be looked at.
  world.Hang("/new");
  const int64_t late = world.Reload({TestModel("m"), TestModel("new")}, seconds(20));
  world.Advance(seconds(20));
  EXPECT_EQ(world.Outcome(late).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(world.Outcome(late).message()),
              AllOf(HasSubstr("model 'new'"), Not(HasSubstr("model 'm'"))));
  // Looks go on where they come back.
  world.Put("/m", 2);
  world.Recover("/m");
  world.Finish();
  EXPECT_EQ(world.Served("m"), "2");
}

// The caller may be less patient than the reload.
TEST(Reload, WhatHangsAndDoesNotChangeIsNoReasonToBeLate) {
  ServingWorld world;
  world.Hang("/m");
  const int64_t ticket = world.Reload({TestModel("m")}, seconds(2));
  EXPECT_LE(world.next(), world.now() + seconds(2));
  world.Advance(seconds(2));
  EXPECT_TRUE(world.Outcome(ticket).ok()) << world.Outcome(ticket);
}

TEST(Reload, AChangedModelIsReplacedInOneStep) {
  ModelConfig before = TestModel("m"), after = TestModel("m");
  after.batching.max_batch_size = 7;
  ServingWorld world(before);
  const int64_t ticket = world.Reload({after});
  EXPECT_EQ(world.Loads(), "m 1");
  EXPECT_EQ(world.States("m"), "1 AVAILABLE");
  world.FinishLoad();
  EXPECT_TRUE(world.Outcome(ticket).ok());
  const auto published = Published(world.lifecycle().models().at("m"));
  ASSERT_EQ(published.size(), 1u);
  EXPECT_EQ(published[0]->config->batching.max_batch_size, 7);
  EXPECT_EQ(world.Unloads(), "m");
  EXPECT_EQ(world.States("m"), "1 AVAILABLE");
  world.Finish();
  EXPECT_EQ(world.loaded(), 1u);
}

TEST(Reload, WeightsAreThoseOfTheConfigurationThatALoadIsFor) {
  ModelConfig light = TestModel("m"), heavy = TestModel("n");
  heavy.cpu_shares = 8;
  LifecycleWorld world({light, heavy});
  for (const char* path : {"/m", "/n", "/o"}) world.Put(path, 1);
  world.Step();
  EXPECT_EQ(world.HeaviestOfLastLoad(), 8);
  world.Finish();
  ModelConfig heavier = TestModel("o");
  heavier.cpu_shares = 20;
  world.Reload({light, heavier});
  EXPECT_EQ(world.Loads(), "o 1");
  EXPECT_EQ(world.HeaviestOfLastLoad(), 20);
  // A load that belongs to what is active meanwhile.
  world.Put("/n", 2);
  world.Advance(seconds(1));
  EXPECT_EQ(world.Loads(), "o 1, n 2");
  EXPECT_EQ(world.HeaviestOfLastLoad(), 8);
  world.FinishLoad();
  world.Finish();
  world.Put("/m", 2);
  world.Advance(seconds(1));
  EXPECT_EQ(world.HeaviestOfLastLoad(), 20);
}

TEST(Reload, OtherVersionsOfTheSameModelAreNotLoadedAnew) {
  ModelConfig before = TestModel("m"), after = TestModel("m");
  after.versions.latest = 2;
  LifecycleWorld world({before}, WithoutPolling());
  world.Put("/m", 1);
  world.Put("/m", 2);
  world.Finish();
  const int64_t ticket = world.Reload({after});
  EXPECT_EQ(world.Loads(), "m 1");
  world.Finish();
  EXPECT_TRUE(world.Outcome(ticket).ok());
  EXPECT_EQ(world.Served("m"), "2, 1");
  EXPECT_EQ(world.finished_loads(), 2);
}

TEST(Reload, LooksForNewVersionsAtOnce) {
  ServingWorld world(TestModel("m"), WithoutPolling());
  world.Put("/m", 2);
  world.Advance(seconds(1000));
  EXPECT_EQ(world.Served("m"), "1");
  const int64_t ticket = world.Reload({TestModel("m")});
  world.Finish();
  EXPECT_TRUE(world.Outcome(ticket).ok());
  EXPECT_EQ(world.Served("m"), "2");
  // One that is bad is an error of the reload that first sees it.
  world.Put("/m", 3);
  world.Break("m", 3, kBadModel);
  const int64_t bad = world.Reload({TestModel("m")});
  world.Finish();
  EXPECT_THAT(std::string(world.Outcome(bad).message()), HasSubstr("version 3"));
  EXPECT_EQ(world.Served("m"), "2");
}

TEST(Reload, AModelThatWasBrokenBeforeDoesNotHoldUpTheOthers) {
  LifecycleWorld world({TestModel("bad"), TestModel("gone")});
  world.Put("/bad", 1);
  world.Put("/new", 1);
  world.Break("bad", 1, kBadModel);
  world.Finish();
  const int64_t ticket = world.Reload({TestModel("bad"), TestModel("gone"), TestModel("new")});
  world.Finish();
  EXPECT_TRUE(world.Outcome(ticket).ok()) << world.Outcome(ticket);
  EXPECT_EQ(world.Served("new"), "1");
  EXPECT_EQ(world.States("bad"), "1 END!");
}

Lifecycle::Options WithoutRetries() {
  Lifecycle::Options options;
  options.times.max_retries = 0;
  return options;
}

TEST(Reload, TriesAnewWhatMayPass) {
  LifecycleWorld world({TestModel("m"), TestModel("bad")}, WithoutRetries());
  world.Put("/m", 1);
  world.Put("/bad", 1);
  world.Break("m", 1, kPassing);
  world.Break("bad", 1, kBadModel);
  world.Finish();
  EXPECT_EQ(world.States("m"), "1 END!");
  // It is no part of the attempt: it was not there before, either.
  EXPECT_TRUE(world.Outcome(world.Reload({TestModel("m"), TestModel("bad")})).ok());
  EXPECT_EQ(world.Loads(), "m 1") << "but not what is wrong with the files";
  world.Finish();
  EXPECT_EQ(world.States("m"), "1 END!");
  world.Mend("m", 1);
  EXPECT_TRUE(world.Outcome(world.Reload({TestModel("m"), TestModel("bad")})).ok());
  world.Finish();
  EXPECT_EQ(world.Served("m"), "1");
}

// With labels, say, that are other ones.
TEST(Reload, WaitsForWhatIsTriedAnewWhereTheModelIsChanged) {
  ModelConfig labelled = TestModel("m");
  labelled.version_labels = {{"stable", 1}};
  LifecycleWorld world({TestModel("m")}, WithoutRetries());
  world.Put("/m", 1);
  world.Break("m", 1, kPassing);
  world.Finish();
  const int64_t failed = world.Reload({labelled});
  EXPECT_FALSE(world.Ended(failed));
  world.Finish();
  EXPECT_EQ(world.Outcome(failed).code(), absl::StatusCode::kFailedPrecondition)
      << "its label leads nowhere";
  world.Mend("m", 1);
  const int64_t ticket = world.Reload({labelled});
  EXPECT_FALSE(world.Ended(ticket));
  world.Finish();
  EXPECT_TRUE(world.Outcome(ticket).ok()) << world.Outcome(ticket);
  EXPECT_EQ(world.Served("m"), "1");
}

TEST(Reload, WaitsForATryThatIsUnderWay) {
  ModelConfig labelled = TestModel("m");
  labelled.version_labels = {{"stable", 1}};
  LifecycleWorld world({TestModel("m")});
  world.Put("/m", 1);
  world.Break("m", 1, kPassing);
  world.Finish();
  world.Mend("m", 1);
  world.Advance(seconds(60));
  EXPECT_EQ(world.Loads(), "m 1");
  const int64_t ticket = world.Reload({labelled});
  EXPECT_FALSE(world.Ended(ticket));
  world.Finish();
  EXPECT_TRUE(world.Outcome(ticket).ok()) << world.Outcome(ticket);
}

TEST(Reload, WaitsForFilesThatChange) {
  LifecycleWorld world({});
  world.Put("/m", 1, 1, Duration::zero());
  const int64_t ticket = world.Reload({TestModel("m")});
  EXPECT_EQ(world.Loads(), "");
  world.Advance(seconds(1));
  EXPECT_EQ(world.Loads(), "m 1");
  world.Finish();
  EXPECT_TRUE(world.Outcome(ticket).ok());
}

TEST(Reload, OneAfterTheOther) {
  LifecycleWorld world({});
  for (const char* path : {"/a", "/b", "/c"}) world.Put(path, 1);
  const int64_t first = world.Reload({TestModel("a")}, seconds(100));
  const int64_t second = world.Reload({TestModel("b")}, seconds(5));
  const int64_t third = world.Reload({TestModel("c")}, seconds(100));
  EXPECT_EQ(world.Loads(), "a 1");
  world.Advance(seconds(5));
  EXPECT_EQ(world.Outcome(second).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(world.Outcome(second).message()), HasSubstr("before its turn"));
  EXPECT_FALSE(world.Ended(first));
  world.FinishLoad();
  EXPECT_TRUE(world.Outcome(first).ok());
  EXPECT_EQ(world.Served("a"), "1");
  EXPECT_FALSE(world.Ended(third));
  world.Finish();
  EXPECT_TRUE(world.Outcome(third).ok());
  EXPECT_EQ(world.Served("c"), "1");
  EXPECT_EQ(world.States("a"), "none");
  EXPECT_EQ(world.lifecycle().config().generation, 3);
}

TEST(Reload, OneThatNobodyWaitsForLetsTheNextGoOn) {
  LifecycleWorld world({TestModel("a")}, WithoutPolling());
  for (const char* path : {"/a", "/b", "/c", "/d"}) world.Put(path, 1);
  world.Finish();
  const int64_t first = world.Reload({TestModel("b")}, seconds(100));
  const int64_t second = world.Reload({TestModel("c")}, seconds(100));
  const int64_t third = world.Reload({TestModel("d")}, seconds(100));
  world.Cancel(second);
  EXPECT_EQ(world.Outcome(second).code(), absl::StatusCode::kCancelled);
  EXPECT_FALSE(world.Ended(first));
  world.Cancel(first);
  EXPECT_EQ(world.Outcome(first).code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(std::string(world.Outcome(first).message()),
              AllOf(HasSubstr("was not changed"), HasSubstr("was loaded: model 'b': ")));
  EXPECT_EQ(world.Served("a"), "1");
  world.Finish();
  EXPECT_TRUE(world.Outcome(third).ok()) << world.Outcome(third);
  EXPECT_EQ(world.Served("d"), "1");
  world.Cancel(third);
  EXPECT_TRUE(world.lifecycle().config().last_error.ok()) << "it has ended";
}

TEST(Reload, AFewWaitAndThoseThatLeaveMakeRoom) {
  LifecycleWorld world({});
  world.Put("/a", 1);
  const int64_t first = world.Reload({TestModel("a")});
  std::vector<int64_t> waiting;
  waiting.reserve(8);
  for (int i = 0; i < 8; ++i) waiting.push_back(world.Reload({}));
  EXPECT_EQ(world.Outcome(world.Reload({})).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(world.lifecycle().config().last_error.ok()) << "of no change that was tried";
  for (const int64_t ticket : waiting) {
    EXPECT_FALSE(world.Ended(ticket));
    world.Cancel(ticket);
    EXPECT_EQ(world.Outcome(ticket).code(), absl::StatusCode::kCancelled);
  }
  const int64_t next = world.Reload({TestModel("a")});
  EXPECT_FALSE(world.Ended(next));
  world.Finish();
  EXPECT_TRUE(world.Outcome(first).ok()) << world.Outcome(first);
  EXPECT_TRUE(world.Outcome(next).ok()) << world.Outcome(next);
}

// The generation counts when a reload's turn comes, not when it is asked for.
TEST(Reload, ReplacesNoOtherGenerationThanTheOneNamed) {
  LifecycleWorld world({});
  for (const char* path : {"/a", "/b"}) world.Put(path, 1);
  const int64_t first = world.Reload({TestModel("a")}, seconds(100), 1);
  const int64_t second = world.Reload({TestModel("b")}, seconds(100), 1);
  const int64_t third = world.Reload({TestModel("b")}, seconds(100), 2);
  world.Finish();
  EXPECT_TRUE(world.Outcome(first).ok()) << world.Outcome(first);
  EXPECT_EQ(world.Outcome(second).code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(world.Outcome(second).message()),
              AllOf(HasSubstr("generation 2"), HasSubstr("not 1")));
  EXPECT_TRUE(world.Outcome(third).ok()) << world.Outcome(third);
  EXPECT_EQ(world.Served("b"), "1");
}

TEST(Reload, AModelThatLeftMayComeBackWhileItIsStillUnloaded) {
  ServingWorld world;
  world.Reload({});
  EXPECT_EQ(world.Unloads(), "m");
  EXPECT_EQ(world.States("m"), "none");
  const int64_t back = world.Reload({TestModel("m")});
  world.FinishLoad();
  EXPECT_TRUE(world.Outcome(back).ok());
  EXPECT_EQ(world.Served("m"), "1");
  world.Finish();
  EXPECT_EQ(world.Served("m"), "1");
  EXPECT_EQ(world.loaded(), 1u);
}

// Random schedules: files come and go, loads fail, reloads succeed and do not, in any order.
// A model that is configured and has served serves on; what was loaded is served or goes.
class ReloadSchedule {
 public:
  explicit ReloadSchedule(uint32_t seed)
      : random_(seed), world_({TestModel("a"), TestModel("b")}) {}

  void Run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      Act();
      Check();
    }
    for (int i = 0; i < 20; ++i) {  // time for all retries and settling
      world_.Advance(std::chrono::minutes(10));
      world_.Finish();
    }
    size_t served = 0;
    for (const auto& [name, entry] : world_.lifecycle().models()) served += Published(entry).size();
    EXPECT_EQ(world_.loaded(), served) << "memory without use";
    for (const int64_t ticket : tickets_) EXPECT_TRUE(world_.Ended(ticket));
  }

 private:
  int Pick(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  std::string Path() { return absl::StrCat("/", std::string(1, static_cast<char>('a' + Pick(3)))); }

  void Act() {
    switch (Pick(9)) {
      case 0:
        return world_.Put(Path(), Pick(5), random_() % 3, seconds(Pick(3)));
      case 1:
        return world_.Delete(Path(), Pick(5));
      case 2:
        return world_.Break(Path().substr(1), Pick(5),
                            Pick(2) == 0 ? kBadModel : absl::UnavailableError(""));
      case 3:
        return world_.Mend(Path().substr(1), Pick(5));
      case 4:
        return Reload();
      case 5:
        return world_.Advance(std::chrono::milliseconds(Pick(5000)));
      case 6:
        return (void)world_.FinishUnload();
      default:
        return (void)world_.FinishLoad();
    }
  }

  void Reload() {
    std::vector<ModelConfig> models;
    for (const char* name : {"a", "b", "c"}) {
      if (Pick(3) == 0) continue;
      models.push_back(TestModel(name, Pick(4) == 0 ? Path() : ""));
      models.back().versions.latest = 1 + Pick(2);
      models.back().workers = 1 + Pick(2);
    }
    tickets_.push_back(world_.Reload(models, seconds(Pick(20))));
  }

  void Check() {
    std::set<std::string> configured;
    for (const ModelConfig& model : world_.lifecycle().config().models)
      configured.insert(model.name);
    for (const std::string name : {"a", "b", "c"}) {
      const bool serves = !world_.Served(name).empty();
      if (configured.count(name) == 0) {
        EXPECT_FALSE(serves) << name;
        served_.erase(name);
      } else if (serves) {
        served_.insert(name);
      } else {
        EXPECT_EQ(served_.count(name), 0u) << name << " does not serve any more";
      }
    }
    const int64_t generation = world_.lifecycle().config().generation;
    int64_t good = 1;
    for (const int64_t ticket : tickets_)
      good += world_.Ended(ticket) && world_.Outcome(ticket).ok() ? 1 : 0;
    EXPECT_EQ(generation, good);
  }

  std::mt19937 random_;
  LifecycleWorld world_;
  std::vector<int64_t> tickets_;
  std::set<std::string> served_;
};

TEST(Reload, RandomSchedules) {
  for (int seed = 0; seed < Rounds(300) && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    ReloadSchedule(static_cast<uint32_t>(seed)).Run(200);
  }
}

}  // namespace
}  // namespace floe::server
