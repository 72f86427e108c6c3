// Versions that cannot end, places that hang, and files that change under a loaded version.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/registry/local_registry_for_test.h"

namespace floe::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class AbandonedTest : public RegistryTest {
 protected:
  // A scan each time the clock is advanced.
  LocalRegistry::Options Polled() {
    LocalRegistry::Options options;
    options.clock = &clock_;
    options.drain = Duration::zero();
    return options;
  }
  VersionStatus StatusOf(const LocalRegistry& registry, int64_t version) {
    auto statuses = registry.Status("m", {version, ""});
    // Not copied: TSan does not see how the library counts what shares an error's text.
    return statuses.ok() ? std::move(statuses->front()) : VersionStatus{};
  }
  bool Becomes(LocalRegistry* registry, const std::function<bool()>& condition) {
    return Eventually([&] {
      clock_.Advance(std::chrono::seconds(1));
      registry->Wake();
      registry->CheckProgress(Clock::Steady().Now());
      return condition();
    });
  }
  // A request whose answer is not taken until `go_`, on its worker or on this thread's behalf.
  void Hold(LocalRegistry* registry, FloatCall* call) {
    const auto served = registry->Acquire("m", {});
    ASSERT_TRUE(served.ok()) << served.status();
    auto request = call->MakeRequest((*served)->model());
    request.complete = [this](const absl::StatusOr<Outputs>&, const Timings&) {
      held_ = true;
      while (!go_) std::this_thread::yield();
    };
    (*served)->Submit(std::move(request));
  }

  FakeClock clock_;
  std::atomic<bool> held_{false}, go_{false};
};

TEST_F(AbandonedTest, AVersionThatCannotEndKeepsNoOtherFromLoadingOrEnding) {
  for (const bool on_callers_thread : {false, true}) {
    SCOPED_TRACE(on_callers_thread);
    held_ = go_ = false;
    std::filesystem::remove_all(root_ + "/m");
    Write("m/1/frozen.pb", TimesGraph(1));
    ModelConfig config = Config("m", "m");
    config.workers = 1;
    config.inline_below_us = on_callers_thread ? 1'000'000 : 0;
    FloatCall stuck({{Shape({1, 2}), {1, 2}}});
    LocalRegistry registry({config}, Polled(), &health_);
    ASSERT_TRUE(registry.StartLoading().ok());
    ASSERT_TRUE(Becomes(&registry, [&] { return registry.Acquire("m", {}).ok(); }));
    std::thread caller([&] { Hold(&registry, &stuck); });
    while (!held_) std::this_thread::yield();
    for (const int64_t version : {2, 3}) {
      Write(absl::StrCat("m/", version, "/frozen.pb"), TimesGraph(2));
      EXPECT_TRUE(Becomes(&registry, [&] {
        return StatusOf(registry, version).state == VersionState::kAvailable;
      }));
    }
    EXPECT_TRUE(Becomes(&registry, [&] {
      return StatusOf(registry, 1).state == VersionState::kEnd &&
             StatusOf(registry, 2).state == VersionState::kEnd;
    }));
    const VersionStatus first = StatusOf(registry, 1), second = StatusOf(registry, 2);
    EXPECT_EQ(first.state, VersionState::kEnd);
    EXPECT_THAT(std::string(first.error.message()),
                AllOf(HasSubstr("abandoned: after drain_timeout_seconds (0)"),
                      HasSubstr(on_callers_thread ? "a caller's thread for" : "w0:m for")));
    EXPECT_EQ(second.state, VersionState::kEnd);
    EXPECT_TRUE(second.error.ok()) << second.error;
    EXPECT_EQ(registry.Abandoned().versions, 1);
    EXPECT_EQ(registry.Abandoned().threads, 1);
    // What is left of it ends when it can, and its memory comes back.
    const int64_t both = registry.memory().in_use();
    go_ = true;
    caller.join();
    EXPECT_TRUE(Becomes(&registry, [&] {
      return registry.memory().in_use() < both && registry.Abandoned().versions == 0;
    }));
  }
}

TEST_F(AbandonedTest, AFileThatChangesUnderALoadedVersionIsReported) {
  const std::string file = Write("m/1/frozen.pb", TimesGraph(1));
  LocalRegistry registry({Config("m", "m")}, Polled(), &health_);
  ASSERT_TRUE(registry.StartLoading().ok());
  ASSERT_TRUE(Becomes(&registry, [&] { return registry.Acquire("m", {}).ok(); }));
  EXPECT_TRUE(StatusOf(registry, 1).error.ok());
  std::ofstream(file) << TimesGraph(22);
  ASSERT_TRUE(Becomes(&registry, [&] { return !StatusOf(registry, 1).error.ok(); }));
  VersionStatus status = StatusOf(registry, 1);
  EXPECT_EQ(status.state, VersionState::kAvailable);
  EXPECT_EQ(status.error.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.error.message()), HasSubstr("overwritten in place"));
  std::ofstream(file + ".new") << TimesGraph(1);
  std::filesystem::rename(file + ".new", file);
  EXPECT_TRUE(Becomes(&registry, [&] {
    return absl::StrContains(std::string(StatusOf(registry, 1).error.message()), "was replaced");
  }));
  EXPECT_TRUE(registry.Acquire("m", {}).ok());
}

// Looks that hang, more of them than there are threads, at places of other models.
TEST_F(AbandonedTest, HungStorageBlocksItsOwnModelsOnly) {
  constexpr int kHung = 100;
  Write("fine/frozen.pb", TimesGraph(1));
  std::vector<ModelConfig> models;
  models.reserve(kHung + 1);
  for (int i = 0; i < kHung; ++i)
    models.push_back(Config(absl::StrCat("hung", i), absl::StrCat("hung", i)));
  models.push_back(Config("m", "fine"));
  LocalRegistry::Options options = Once();
  std::promise<void> end;
  options.scan_with = [hang = end.get_future().share()](const std::string& path,
                                                        const VersionsToScan& scan) {
    if (absl::StrContains(path, "/hung")) hang.wait();
    return ScanVersions(path, scan);
  };
  LocalRegistry registry(models, options, &health_);
  ASSERT_TRUE(registry.StartLoading().ok());
  const TimePoint later = Clock::Steady().Now() + std::chrono::minutes(1);
  EXPECT_TRUE(Eventually([&] {
    registry.CheckProgress(later);
    return registry.Acquire("m", {}).ok();
  }));
  end.set_value();
}

// The same of loads.
TEST_F(AbandonedTest, ALoadThatHangsKeepsNoOtherModelFromLoading) {
  constexpr int kHung = 5;
  std::vector<ModelConfig> models;
  models.reserve(kHung + 1);
  for (int i = 0; i < kHung; ++i) {
    Write(absl::StrCat("hung", i, "/frozen.pb"), TimesGraph(1));
    models.push_back(Config(absl::StrCat("hung", i), absl::StrCat("hung", i)));
  }
  Write("fine/frozen.pb", TimesGraph(1));
  models.push_back(Config("m", "fine"));
  LocalRegistry::Options options = Once();
  options.lifecycle.num_load_threads = 1;
  std::promise<void> end;
  std::atomic<int> hanging{0};
  options.load_with = [&, hang = end.get_future().share()](const ModelConfig& config,
                                                           const LoadSource& source) {
    if (config.name != "m") {
      ++hanging;
      hang.wait();
    }
    return LoadModel(config, source, LoadOptions(), MemoryBudget());
  };
  LocalRegistry registry(models, options, &health_);
  ASSERT_TRUE(registry.StartLoading().ok());
  const TimePoint later = Clock::Steady().Now() + std::chrono::minutes(1);
  EXPECT_TRUE(Eventually([&] {
    registry.CheckProgress(later);
    return hanging == kHung && registry.Acquire("m", {}).ok();
  }));
  EXPECT_FALSE(registry.Acquire("hung0", {}).ok());
  end.set_value();
}

}  // namespace
}  // namespace floe::server
