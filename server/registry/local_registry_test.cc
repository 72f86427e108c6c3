#include "server/registry/local_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "model/import/import.h"
#include "server/executor/test_models_for_test.h"
#include "server/registry/local_registry_for_test.h"

namespace floe::server {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

std::vector<std::string> NamesOf(const LocalRegistry& registry) {
  std::vector<std::string> names;
  for (const ModelConfig& config : registry.CurrentConfig().models) names.push_back(config.name);
  return names;
}

TEST_F(RegistryTest, LoadsTheNewestVersionAndServesIt) {
  Write("m/1/graph.pb", kCentredGraph);
  Write("m/2/frozen.pb", kTwiceGraph);
  LocalRegistry registry({Config("m", "m")}, Once(), &health_);
  EXPECT_EQ(health_.Get("model/m"), ServingStatus::kNotServing);
  EXPECT_EQ(health_.Get(""), ServingStatus::kNotServing);
  EXPECT_EQ(registry.Acquire("m", {}).status().code(), absl::StatusCode::kUnavailable);
  ASSERT_TRUE(registry.StartLoading().ok());
  registry.WaitUntilLoaded();
  EXPECT_EQ(registry.Table()->CountModels().available, 1u);
  EXPECT_EQ(health_.Get("model/m"), ServingStatus::kServing);
  for (const char* name :
       {"", "tensorflow.serving.PredictionService", "tensorflow.serving.ModelService",
        "PredictionService", "ModelService", "inference.GRPCInferenceService"})
    EXPECT_EQ(health_.Get(name), ServingStatus::kServing) << name;
  EXPECT_THAT(NamesOf(registry), ElementsAre("m"));
  const auto status = registry.Status("m", {2, ""});
  ASSERT_TRUE(status.ok()) << status.status();
  ASSERT_EQ(status->size(), 1u);
  EXPECT_EQ((*status)[0].version, 2);
  EXPECT_EQ((*status)[0].state, VersionState::kAvailable);

  const auto served = registry.Acquire("m", {});
  ASSERT_TRUE(served.ok()) << served.status();
  EXPECT_EQ((*served)->model()->info().version, 2);
  FloatCall call({{Shape({1, 2}), {3, -4}}});
  (*served)->Submit(call.MakeRequest((*served)->model()));
  registry.Stop();  // finishes what was taken
  EXPECT_THAT(call.result, ElementsAre(6, 0));
  EXPECT_EQ(registry.Acquire("m", {}).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(RegistryTest, UnknownNamesAndVersions) {
  Write("m/7/frozen.pb", kTwiceGraph);
  LocalRegistry registry({Config("digits", "m")}, Once(), &health_);
  ASSERT_TRUE(registry.StartLoading().ok());
  registry.WaitUntilLoaded();
  const absl::Status name = registry.Acquire("digit", {}).status();
  EXPECT_EQ(name.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(
      std::string(name.message()),
      AllOf(HasSubstr("'digit'"), HasSubstr("nearest: 'digits'"), Not(HasSubstr("floe.probe"))));
  const absl::Status version = registry.Status("digits", {8, ""}).status();
  EXPECT_EQ(version.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(version.message()),
              AllOf(HasSubstr("version 8"), HasSubstr("available: 7")));
}

TEST_F(RegistryTest, ABadModelDoesNotStopTheOthers) {
  Write("good/frozen.pb", kTwiceGraph);
  Write("bad/1/frozen.pb", "node { name: \"a\" op: \"NoSuchOp\" }");
  LocalRegistry registry({Config("good", "good"), Config("bad", "bad"), Config("gone", "gone")},
                         Once(), &health_);
  ASSERT_TRUE(registry.StartLoading().ok());
  registry.WaitUntilLoaded();
  EXPECT_THAT(registry.Table()->CountModels().failed, ElementsAre("bad", "gone"));
  EXPECT_EQ(health_.Get("model/good"), ServingStatus::kServing);
  EXPECT_EQ(health_.Get("model/bad"), ServingStatus::kNotServing);
  EXPECT_EQ(health_.Get(""), ServingStatus::kNotServing);
  EXPECT_TRUE(registry.Acquire("good", {}).ok());
  const absl::Status bad = registry.Acquire("bad", {}).status();
  EXPECT_EQ(bad.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(bad.message()), HasSubstr("NoSuchOp"));
  const absl::Status gone = registry.Acquire("gone", {}).status();
  EXPECT_THAT(std::string(gone.message()), AllOf(HasSubstr("<base_path>"), Not(HasSubstr(root_))));
  const auto status = registry.Status("bad", {});
  ASSERT_TRUE(status.ok());
  EXPECT_EQ((*status)[0].version, 1);
  EXPECT_EQ((*status)[0].state, VersionState::kEnd);
  EXPECT_FALSE((*status)[0].error.ok());
}

TEST_F(RegistryTest, TheProbeModelAnswersOnAWorker) {
  LocalRegistry registry({}, Once(), &health_);
  ASSERT_TRUE(registry.StartLoading().ok());
  registry.WaitUntilLoaded();
  EXPECT_EQ(health_.Get(""), ServingStatus::kServing) << "no models: nothing to wait for";
  EXPECT_THAT(NamesOf(registry), ElementsAre());
  const auto served = registry.Acquire(kProbeModel, {});
  ASSERT_TRUE(served.ok()) << served.status();
  FloatCall call({{Shape({1, 1}), {21}}});
  (*served)->Submit(call.MakeRequest((*served)->model()));
  registry.Stop();
  EXPECT_THAT(call.result, ElementsAre(42));
}

// A model whose work stands still is not serving; its neighbour is, and so is it once it moves
// again.
TEST_F(RegistryTest, AStuckModelIsNotServing) {
  Write("m/frozen.pb", kTwiceGraph);
  ModelConfig stuck = Config("stuck", "m"), fine = Config("fine", "m");
  stuck.inline_below_us = 0;
  stuck.workers = 1;
  LocalRegistry registry({stuck, fine}, Once(), &health_);
  ASSERT_TRUE(registry.StartLoading().ok());
  registry.WaitUntilLoaded();
  const auto served = registry.Acquire("stuck", {});
  ASSERT_TRUE(served.ok());
  FloatCall call({{Shape({1, 2}), {1, 2}}});
  std::atomic<bool> entered{false}, go{false};
  auto request = call.MakeRequest((*served)->model());
  request.complete = [&](const absl::StatusOr<Outputs>&, const Timings&) {
    entered = true;
    while (!go) std::this_thread::yield();
  };
  (*served)->Submit(std::move(request));
  while (!entered) std::this_thread::yield();
  const TimePoint now = Clock::Steady().Now();
  registry.CheckProgress(now);
  EXPECT_EQ(health_.Get("model/stuck"), ServingStatus::kServing);
  registry.CheckProgress(now + std::chrono::minutes(10));
  EXPECT_EQ(health_.Get("model/stuck"), ServingStatus::kNotServing);
  EXPECT_EQ(health_.Get("model/fine"), ServingStatus::kServing);
  EXPECT_EQ(health_.Get(""), ServingStatus::kServing);
  go = true;
  FloatCall next({{Shape({1, 2}), {1, 2}}});
  Answer(served->get(), &next);
  EXPECT_TRUE(Eventually([&] {
    registry.CheckProgress(now + std::chrono::minutes(20));
    return health_.Get("model/stuck") == ServingStatus::kServing;
  }));
}

VersionState StateOf(const LocalRegistry& registry, const std::string& name, int64_t version) {
  const auto statuses = registry.Status(name, {version, ""});
  return statuses.ok() ? statuses->at(0).state : VersionState::kUnknown;
}

int64_t NewestOf(const LocalRegistry& registry, const std::string& name) {
  const auto served = registry.Acquire(name, {});
  return served.ok() ? (*served)->model()->info().version : -1;
}

TEST_F(RegistryTest, VersionsAreFoundWhileItRuns) {
  FakeClock clock;
  LocalRegistry::Options options;
  options.clock = &clock;
  Write("m/1/frozen.pb", TimesGraph(1));
  LocalRegistry registry({Config("m", "m")}, options, &health_);
  ASSERT_TRUE(registry.StartLoading().ok());
  const auto scan = [&] {
    clock.Advance(std::chrono::seconds(1));
    registry.Wake();
  };
  ASSERT_TRUE(Eventually([&] {
    scan();
    return NewestOf(registry, "m") == 1;
  }));
  Write("m/2/frozen.pb", TimesGraph(2));
  ASSERT_TRUE(Eventually([&] {
    scan();
    return NewestOf(registry, "m") == 2;
  }));
  ASSERT_TRUE(Eventually([&] { return StateOf(registry, "m", 1) == VersionState::kEnd; }));
  // A bad one is seen, said and changes nothing. It may be seen before it is whole, too.
  Write("m/3/frozen.pb", "node { name: \"a\" op: \"NoSuchOp\" }");
  ASSERT_TRUE(Eventually([&] {
    scan();
    const absl::Status third = registry.Acquire("m", {3, ""}).status();
    return absl::IsNotFound(third) && absl::StrContains(third.message(), "NoSuchOp");
  }));
  EXPECT_EQ(StateOf(registry, "m", 3), VersionState::kEnd);
  EXPECT_EQ(NewestOf(registry, "m"), 2);
  EXPECT_EQ(health_.Get("model/m"), ServingStatus::kServing);
  EXPECT_EQ(health_.Get(""), ServingStatus::kServing);
}

// The newest is still being copied, as its marker says.
TEST_F(RegistryTest, VersionsThatAreNotWholeAreNotLoaded) {
  for (const int version : {1, 2, 3})
    Write(absl::StrCat("m/", version, "/frozen.pb"), TimesGraph(version));
  for (const int version : {1, 2}) Write(absl::StrCat("m/", version, "/.complete"), "");
  ModelConfig config = Config("m", "m");
  config.completion_marker = ".complete";
  LocalRegistry registry({config}, Once(), &health_);
  ASSERT_TRUE(registry.StartLoading().ok());
  registry.WaitUntilLoaded();
  EXPECT_EQ(NewestOf(registry, "m"), 2);
  const auto error = [&](int64_t version) {
    const auto status = registry.Status("m", {version, ""});
    EXPECT_TRUE(status.ok()) << status.status();
    return status.ok() ? std::string(status->at(0).error.message()) : "";
  };
  EXPECT_THAT(error(3), AllOf(HasSubstr("<base_path>/3"), HasSubstr("'.complete'")));
}

// Work that was accepted, and handles that were given out, end on the version they began with.
TEST_F(RegistryTest, TheOldVersionStaysAsLongAsARequestHasIt) {
  Write("m/1/frozen.pb", TimesGraph(1));
  LocalRegistry registry({Config("m", "m")}, Once(), &health_);
  ASSERT_TRUE(registry.StartLoading().ok());
  registry.WaitUntilLoaded();
  auto old = registry.Acquire("m", {});
  ASSERT_TRUE(old.ok()) << old.status();
  Write("m/2/frozen.pb", TimesGraph(2));
  const absl::Status reloaded =
      registry.Reload({{Config("m", "m")}, Clock::Steady().Now() + std::chrono::minutes(1)});
  ASSERT_TRUE(reloaded.ok()) << reloaded;
  EXPECT_EQ(registry.CurrentConfig().generation, 2);
  EXPECT_EQ(NewestOf(registry, "m"), 2);
  EXPECT_EQ(StateOf(registry, "m", 1), VersionState::kUnloading);
  EXPECT_EQ(registry.Acquire("m", {1, ""}).status().code(), absl::StatusCode::kNotFound);

  FloatCall call({{Shape({1, 2}), {3, 4}}});
  Answer(old->get(), &call);
  EXPECT_THAT(call.result, ElementsAre(3, 4));
  EXPECT_EQ(StateOf(registry, "m", 1), VersionState::kUnloading);
  old = absl::UnknownError("let go");
  EXPECT_TRUE(Eventually([&] { return StateOf(registry, "m", 1) == VersionState::kEnd; }));
}

TEST_F(RegistryTest, ReloadIsSeenInNamesHealthAndLabels) {
  Write("a/1/frozen.pb", TimesGraph(1));
  Write("b/1/frozen.pb", TimesGraph(1));
  Write("b/2/frozen.pb", TimesGraph(2));
  LocalRegistry registry({Config("a", "a")}, Once(), &health_);
  ASSERT_TRUE(registry.StartLoading().ok());
  registry.WaitUntilLoaded();
  const auto soon = [] { return Clock::Steady().Now() + std::chrono::minutes(1); };
  ModelConfig b = Config("b", "b");
  b.versions.latest = 2;
  b.version_labels = {{"stable", 1}, {"canary", 2}};
  ASSERT_TRUE(registry.Reload({{b}, soon()}).ok()) << registry.CurrentConfig().last_error;
  EXPECT_THAT(NamesOf(registry), ElementsAre("b"));
  EXPECT_EQ(health_.Get("model/a"), std::nullopt);
  EXPECT_EQ(health_.Get("model/b"), ServingStatus::kServing);
  EXPECT_EQ(health_.Get(""), ServingStatus::kServing);
  EXPECT_EQ(registry.Acquire("a", {}).status().code(), absl::StatusCode::kNotFound);
  const auto version = [&](const std::string& label) {
    const auto served = registry.Acquire("b", {std::nullopt, label});
    return served.ok() ? (*served)->model()->info().version : -1;
  };
  EXPECT_EQ(version("stable"), 1);
  EXPECT_EQ(version("canary"), 2);
  EXPECT_THAT(registry.Stats("b")->at(0).labels, ElementsAre(Pair("canary", 2), Pair("stable", 1)));
  EXPECT_EQ(registry.Acquire("b", {std::nullopt, "beta"}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(registry.Status("b", {std::nullopt, "stable"})->at(0).version, 1);

  // A failure leaves everything, and is remembered.
  const absl::Status failed = registry.Reload({{b, Config("gone", "gone")}, soon()});
  EXPECT_EQ(failed.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(registry.CurrentConfig().last_error, failed);
  EXPECT_EQ(registry.CurrentConfig().generation, 2);
  EXPECT_EQ(version("stable"), 1);
  EXPECT_THAT(NamesOf(registry), ElementsAre("b"));
}

// Serves model a; a load of model b lasts until it may end.
class HeldLoadTest : public RegistryTest {
 protected:
  HeldLoadTest() {
    Write("a/1/frozen.pb", TimesGraph(1));
    Write("b/1/frozen.pb", TimesGraph(1));
    LocalRegistry::Options options = Once();
    options.clock = &clock_;
    options.scan_with = [this](const std::string& path, const VersionsToScan& scan) {
      if (path == root_ + "/b") ++looks_;
      return ScanVersions(path, scan);
    };
    options.load_with = [this](const ModelConfig& config, const LoadSource& source) {
      if (config.name == "b") loading_ = true;
      while (config.name == "b" && !go_) std::this_thread::yield();
      return LoadModel(config, source, {}, MemoryBudget());
    };
    registry_ = std::make_unique<LocalRegistry>(std::vector{Config("a", "a")}, options, &health_);
    EXPECT_TRUE(registry_->StartLoading().ok());
    registry_->WaitUntilLoaded();
  }
  ~HeldLoadTest() override { go_ = true; }

  absl::Status ReloadWithin(Duration timeout) {
    return registry_->Reload({{Config("b", "b")}, clock_.Now() + timeout});
  }

  FakeClock clock_;
  std::atomic<int> looks_{0};  // at b
  std::atomic<bool> loading_{false}, go_{false};
  std::unique_ptr<LocalRegistry> registry_;  // ends before what its threads read
};

// A load that hangs holds up neither the reload beyond its deadline, nor the end.
TEST_F(HeldLoadTest, AReloadThatHangsIsOverAtItsDeadline) {
  absl::Status late;
  std::thread first([&] { late = ReloadWithin(std::chrono::minutes(1)); });
  EXPECT_TRUE(Eventually([&] { return loading_.load(); }));
  clock_.Advance(std::chrono::minutes(1));
  registry_->Wake();
  first.join();
  EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(late.message()), HasSubstr("model 'b'"));
  EXPECT_EQ(NewestOf(*registry_, "a"), 1);
  // One that waits when the registry stops is told so.
  absl::Status stopped;
  std::thread caller([&] { stopped = ReloadWithin(std::chrono::hours(1)); });
  EXPECT_TRUE(Eventually([&] { return looks_ == 2; })) << "it is under way";
  go_ = true;
  registry_->Stop();
  caller.join();
  EXPECT_TRUE(stopped.ok() || stopped.code() == absl::StatusCode::kUnavailable) << stopped;
  EXPECT_EQ(registry_->Reload({{}, TimePoint::max()}).code(), absl::StatusCode::kUnavailable);
}

TEST_F(HeldLoadTest, ACallerThatLeavesEndsItsReload) {
  for (const bool early : {false, true}) {
    const auto cancel = std::make_shared<CancelToken>();
    if (early) cancel->Cancel();
    absl::Status left;
    std::thread caller([&] {
      left = registry_->Reload({{Config("b", "b")}, TimePoint::max(), {}, cancel});
    });
    if (!early) {
      EXPECT_TRUE(Eventually([&] { return loading_.load(); }));
      cancel->Cancel();
    }
    caller.join();
    EXPECT_EQ(left.code(), absl::StatusCode::kCancelled) << left;
    EXPECT_EQ(NewestOf(*registry_, "a"), 1);
  }
}

// The callers of reloads do not hold up a server that stops: neither one that hangs, nor those that
// wait for it.
TEST_F(HeldLoadTest, ReloadsEndWhenReloadingStops) {
  absl::Status stopped[2];
  std::vector<std::thread> callers;
  for (absl::Status& status : stopped)
    callers.emplace_back([&] { status = ReloadWithin(std::chrono::minutes(1)); });
  EXPECT_TRUE(Eventually([&] { return loading_.load(); }));
  registry_->StopReloading();
  for (std::thread& caller : callers) caller.join();
  for (const absl::Status& status : stopped)
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_EQ(registry_->Reload({{}, TimePoint::max()}).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(NewestOf(*registry_, "a"), 1) << "what was served is served on";
}

// A model under way is what an end would wait for.
TEST_F(HeldLoadTest, SaysWhatIsUnderWay) {
  EXPECT_EQ(registry_->Table()->UnderWay(), "scans for versions");
  Write("a/2/frozen.pb", TimesGraph(2));
  auto old = registry_->Acquire("a", {});
  ASSERT_TRUE(old.ok());
  ASSERT_TRUE(registry_->Reload({{Config("a", "a")}, TimePoint::max()}).ok());
  EXPECT_EQ(registry_->Table()->UnderWay(), "model 'a' version 1 (UNLOADING)");
}

// A dead mount with more models than there are usually threads: the others come and go as ever.
TEST_F(RegistryTest, PlacesThatHangDoNotHoldUpTheOthers) {
  Write("z/1/frozen.pb", TimesGraph(1));
  std::vector<ModelConfig> models;
  for (const char* name : {"a", "b", "c", "d", "e", "z"}) models.push_back(Config(name, name));
  std::atomic<bool> go{false};
  std::atomic<int> hanging{0}, changes{0};
  FakeClock clock;
  LocalRegistry::Options options = Once();
  options.clock = &clock;
  options.on_change = [&] { ++changes; };
  options.scan_with = [&](const std::string& path, const VersionsToScan& scan) {
    if (path != root_ + "/z") ++hanging;
    while (path != root_ + "/z" && !go) std::this_thread::yield();
    return ScanVersions(path, scan);
  };
  LocalRegistry registry(models, options, &health_);
  ASSERT_TRUE(registry.StartLoading().ok());
  EXPECT_TRUE(Eventually([&] { return hanging == 5 && NewestOf(registry, "z") == 1; }));
  EXPECT_EQ(registry.Table()->CountModels().available, 1u);
  EXPECT_FALSE(registry.Table()->CountModels().settled);
  const int before = changes;
  go = true;
  registry.WaitUntilLoaded();
  EXPECT_TRUE(registry.Table()->CountModels().settled);
  EXPECT_THAT(registry.Table()->CountModels().failed, ElementsAre("a", "b", "c", "d", "e"));
  // The table is there before those are told who want to know.
  EXPECT_TRUE(Eventually([&] { return changes > before; }));
  EXPECT_EQ(registry.Status("a", {}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(registry.Status("a", {}).status().message()),
              AllOf(HasSubstr("model 'a'"), HasSubstr("<base_path>"), HasSubstr("No such file")));
}

// Whether the registry stops before it has read the call or after: the caller hears of it.
TEST_F(RegistryTest, AReloadEndsWithTheRegistry) {
  for (int i = 0; i < 50; ++i) {
    LocalRegistry registry({}, Once(), &health_);  // not started: it reads nothing
    std::atomic<bool> called{false};
    absl::Status stopped;
    std::thread caller([&] {
      called = true;
      stopped = registry.Reload({{Config("m", "m")}, TimePoint::max()});
    });
    while (!called) std::this_thread::yield();
    registry.Stop();
    caller.join();
    ASSERT_EQ(stopped.code(), absl::StatusCode::kUnavailable);
  }
}

// Version after version under callers: no call fails, and each answer is one version's.
TEST_F(RegistryTest, SwapsUnderCallers) {
  constexpr int kSwaps = 25;
  Write("m/1/frozen.pb", TimesGraph(1));
  LocalRegistry registry({Config("m", "m")}, Once(), &health_);
  ASSERT_TRUE(registry.StartLoading().ok());
  registry.WaitUntilLoaded();
  std::atomic<bool> stop{false};
  std::atomic<int> answers{0};
  const auto call = [&] {
    while (!stop) {
      const auto served = registry.Acquire("m", {});
      ASSERT_TRUE(served.ok()) << served.status();
      const auto version = static_cast<float>((*served)->model()->info().version);
      FloatCall one({{Shape({3, 2}), {1, 2, 3, 4, 5, 6}}});
      Answer(served->get(), &one);
      ASSERT_TRUE(one.status.ok()) << one.status;
      for (size_t i = 0; i < 6; ++i) ASSERT_EQ(one.result[i], version * static_cast<float>(i + 1));
      ++answers;
    }
  };
  std::vector<std::thread> callers;
  callers.reserve(4);
  for (int i = 0; i < 4; ++i) callers.emplace_back(call);
  for (int version = 2; version <= kSwaps + 1; ++version) {
    Write(absl::StrCat("m/", version, "/frozen.pb"), TimesGraph(version));
    const absl::Status swapped =
        registry.Reload({{Config("m", "m")}, Clock::Steady().Now() + std::chrono::minutes(1)});
    ASSERT_TRUE(swapped.ok()) << swapped;
    EXPECT_EQ(NewestOf(registry, "m"), version);
    const int before = answers;
    ASSERT_TRUE(Eventually([&] { return answers > before + 8; }));
  }
  stop = true;
  for (std::thread& caller : callers) caller.join();
  // Where three older ones end after it, it is not remembered any more.
  EXPECT_TRUE(Eventually([&] {
    const VersionState state = StateOf(registry, "m", kSwaps);
    return state == VersionState::kEnd || state == VersionState::kUnknown;
  }));
}

// Real threads through a real model, batched, inline and alone, with different numbers of rows.
TEST_F(RegistryTest, ManyCallers) {
  Write("m/frozen.pb", kTwiceGraph);
  ModelConfig queued = Config("queued", "m"), direct = Config("direct", "m");
  queued.workers = 2;
  queued.inline_below_us = 0;
  direct.inline_below_us = 1'000'000;
  queued.batching.max_batch_size = direct.batching.max_batch_size = 8;
  LocalRegistry registry({queued, direct}, Once(), &health_);
  ASSERT_TRUE(registry.StartLoading().ok());
  registry.WaitUntilLoaded();
  std::vector<std::thread> threads;
  threads.reserve(4);
  std::atomic<int> right{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 300; ++i) {
        const auto served = registry.Acquire(i % 2 == 0 ? "queued" : "direct", {});
        ASSERT_TRUE(served.ok()) << served.status();
        const int64_t rows = 1 + (i + t) % 10;
        std::vector<float> values(2 * rows);
        for (size_t k = 0; k < values.size(); ++k)
          values[k] = static_cast<float>(1000 * t + i + static_cast<int>(k));
        FloatCall call({{Shape({rows, 2}), values}});
        Answer(served->get(), &call);
        ASSERT_TRUE(call.status.ok()) << call.status;
        for (float& value : values) value *= 2;
        ASSERT_EQ(call.result, values);
        ++right;
      }
    });
  for (std::thread& thread : threads) thread.join();
  registry.Stop();
  EXPECT_EQ(right, 1200);
}

}  // namespace
}  // namespace floe::server
