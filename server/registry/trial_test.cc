// Which loads are tried elsewhere first, and what becomes of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/registry/local_registry_for_test.h"

namespace floe::server {
namespace {

using ::testing::HasSubstr;

class TrialTest : public RegistryTest {
 protected:
  // Trials that end as `outcome_` says, and name their versions.
  LocalRegistry::Options Tried(TrialLoad which) {
    LocalRegistry::Options options = Once();
    options.lifecycle.trial_load = which;
    options.lifecycle.max_load_seconds = 7;
    options.trial = [this](const Trial& trial) -> absl::StatusOr<FileIdentity> {
      {
        MutexLock lock(mutex_);
        tried_.push_back(absl::StrCat(trial.config.name, " ", trial.source.version));
      }
      EXPECT_EQ(trial.limits.longest, std::chrono::seconds(7));
      auto identity = IdentifyFile(trial.source.file);
      if (on_trial_) on_trial_(trial);
      if (!outcome_.ok() && trial.source.version == failing_) return outcome_;
      return identity;
    };
    return options;
  }
  absl::Status Reload(LocalRegistry* registry, std::vector<ModelConfig> models) {
    return registry->Reload({std::move(models), Clock::Steady().Now() + std::chrono::minutes(1)});
  }
  std::vector<std::string> tried() {
    MutexLock lock(mutex_);
    return tried_;
  }

  absl::Status outcome_;
  int64_t failing_ = 2;
  std::function<void(const Trial&)> on_trial_;

 private:
  Mutex mutex_;
  std::vector<std::string> tried_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(TrialTest, AlwaysUpdatesOrNever) {
  Write("a/1/frozen.pb", kTwiceGraph);
  Write("b/1/frozen.pb", kTwiceGraph);
  const struct {
    TrialLoad which;
    std::vector<std::string> at_start, later;
  } cases[] = {{TrialLoad::kAlways, {"a 1"}, {"a 1", "b 1"}},
               {TrialLoad::kUpdates, {}, {"b 1"}},
               {TrialLoad::kNever, {}, {}}};
  for (const auto& c : cases) {
    LocalRegistry registry({Config("a", "a")}, Tried(c.which), &health_);
    const size_t before = tried().size();
    const auto since = [&] {
      const std::vector<std::string> all = tried();
      return std::vector<std::string>(all.begin() + static_cast<int64_t>(before), all.end());
    };
    ASSERT_TRUE(registry.StartLoading().ok());
    registry.WaitUntilLoaded();
    EXPECT_EQ(since(), c.at_start);
    ASSERT_TRUE(Reload(&registry, {Config("a", "a"), Config("b", "b")}).ok());
    EXPECT_EQ(since(), c.later);
    EXPECT_TRUE(registry.Acquire("a", {}).ok());
    EXPECT_TRUE(registry.Acquire("b", {}).ok());
  }
}

TEST_F(TrialTest, AFailedTrialIsTheVersionsError) {
  Write("m/1/frozen.pb", kTwiceGraph);
  Write("m/2/frozen.pb", kTwiceGraph);
  outcome_ = absl::InternalError("the trial load was ended by SIGSEGV");
  LocalRegistry registry({Config("m", "m")}, Tried(TrialLoad::kAlways), &health_);
  ASSERT_TRUE(registry.StartLoading().ok());
  registry.WaitUntilLoaded();
  const auto served = registry.Acquire("m", {});
  ASSERT_TRUE(served.ok()) << served.status();
  EXPECT_EQ((*served)->model()->info().version, 1);
  const auto status = registry.Status("m", {2, ""});
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ((*status)[0].state, VersionState::kEnd);
  EXPECT_THAT(std::string((*status)[0].error.message()), HasSubstr("SIGSEGV"));
}

// What is loaded is what was tried, even where both would do.
TEST_F(TrialTest, AFileThatChangesAfterItsTrialIsNotLoaded) {
  const std::string file = Write("m/1/frozen.pb", kTwiceGraph);
  on_trial_ = [&](const Trial&) {
    std::ofstream(file + ".new") << TimesGraph(3);
    std::filesystem::rename(file + ".new", file);
  };
  LocalRegistry::Options options = Tried(TrialLoad::kAlways);
  options.lifecycle.max_num_load_retries = 0;
  LocalRegistry registry({Config("m", "m")}, options, &health_);
  ASSERT_TRUE(registry.StartLoading().ok());
  registry.WaitUntilLoaded();
  const absl::Status refused = registry.Acquire("m", {}).status();
  EXPECT_THAT(std::string(refused.message()), HasSubstr("has changed since it was looked at"));
}

// Tables are filled from files beside the graph, which may be as bad.
TEST_F(TrialTest, AVersionWhoseOtherFilesChangeAfterItsTrialIsTriedAgain) {
  Write("m/1/frozen.pb", kTwiceGraph);
  const std::string words = Write("m/1/assets/words.txt", "a\nb\n");
  int trials = 0;
  on_trial_ = [&](const Trial&) {
    if (++trials == 1) std::ofstream(words) << "a\nb\nc\n";
  };
  LocalRegistry::Options options = Tried(TrialLoad::kAlways);
  options.lifecycle.load_retry_interval_micros = 0;
  LocalRegistry registry({Config("m", "m")}, options, &health_);
  ASSERT_TRUE(registry.StartLoading().ok());
  registry.WaitUntilLoaded();
  EXPECT_TRUE(Eventually([&] { return registry.Acquire("m", {}).ok(); }));
  EXPECT_EQ(trials, 2);
}

// The model's base_path may be a file among others.
TEST_F(TrialTest, WhatLiesBesideAModelThatIsAFileIsNotItsBusiness) {
  Write("m.pb", kTwiceGraph);
  on_trial_ = [&](const Trial&) { Write("other.pb", "changes"); };
  LocalRegistry::Options options = Tried(TrialLoad::kAlways);
  options.lifecycle.max_num_load_retries = 0;
  LocalRegistry registry({Config("m", "m.pb")}, options, &health_);
  ASSERT_TRUE(registry.StartLoading().ok());
  registry.WaitUntilLoaded();
  EXPECT_TRUE(registry.Acquire("m", {}).ok());
}

TEST_F(TrialTest, ItsMemoryCountsAsLongAsItIsThere) {
  Write("m/1/frozen.pb", kTwiceGraph);
  LocalRegistry::Options options = Tried(TrialLoad::kAlways);
  constexpr int64_t kLimit = int64_t{256} << 20;
  options.lifecycle.memory_limit = {0, kLimit};
  LocalRegistry* watched = nullptr;
  on_trial_ = [&](const Trial& trial) {
    EXPECT_EQ(trial.memory_limit, kLimit);
    EXPECT_EQ(trial.memory_in_use, 0);
    EXPECT_TRUE(trial.limits.charge(kLimit / 2).ok());
    EXPECT_GT(watched->memory().in_use(), kLimit / 4);
    const absl::Status over = trial.limits.charge(2 * kLimit);
    EXPECT_EQ(over.code(), absl::StatusCode::kResourceExhausted);
  };
  LocalRegistry registry({Config("m", "m")}, options, &health_);
  watched = &registry;
  ASSERT_TRUE(registry.StartLoading().ok());
  registry.WaitUntilLoaded();
  EXPECT_TRUE(registry.Acquire("m", {}).ok());
  EXPECT_LT(registry.memory().in_use(), kLimit / 4);
}

// A server that ends does not wait for what is still being tried.
TEST_F(TrialTest, TheEndGivesItUp) {
  Write("m/1/frozen.pb", kTwiceGraph);
  std::atomic<bool> trying{false};
  on_trial_ = [&](const Trial& trial) {
    trying = true;
    while (!trial.limits.cancel->cancelled()) std::this_thread::yield();
  };
  LocalRegistry registry({Config("m", "m")}, Tried(TrialLoad::kAlways), &health_);
  ASSERT_TRUE(registry.StartLoading().ok());
  while (!trying) std::this_thread::yield();
  registry.Stop();
}

}  // namespace
}  // namespace floe::server
