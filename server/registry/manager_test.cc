#include "server/registry/manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "server/registry/local_registry_for_test.h"

namespace floe::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ManagedPublication : public Publication {
 public:
  using Publication::Publication;
  absl::StatusOr<std::vector<ModelStats>> Stats(std::string_view) const override {
    return absl::UnimplementedError("");
  }
  void StartReload(ReloadRequest, ReloadDone) override {}
};

class ManagerTest : public RegistryTest {
 protected:
  void Make(const std::vector<ModelConfig>& models) {
    manager_ = std::make_unique<Manager>(models, options_, memory_, &watch_, &publication_);
  }
  ~ManagerTest() override { Stop(); }
  void Stop() {
    manager_->StopThreads();
    publication_.Close();
    manager_->StopVersions();
  }
  void StartReload(std::vector<ModelConfig> models, ReloadDone done) {
    const auto wanted = std::make_shared<Transaction>(
        ReloadRequest{std::move(models), TimePoint::max()}, std::move(done));
    manager_->Post([wanted](Lifecycle* lifecycle) { lifecycle->reloads().Add(wanted); });
  }

  RegistryOptions options_ = Once();
  MemoryBudget memory_;
  LoadWatch watch_;
  ManagedPublication publication_{&health_, /*strict_readiness=*/true, nullptr};
  std::unique_ptr<Manager> manager_;
};

TEST_F(ManagerTest, PublishesWhatIsConfiguredAtOnceAndWhatIsLoadedLater) {
  Write("m/1/frozen.pb", TimesGraph(1));
  Make({Config("m", "m")});
  EXPECT_EQ(publication_.Table()->CountModels().models, 1u);
  EXPECT_EQ(publication_.Acquire("m", {}).status().code(), absl::StatusCode::kUnavailable);
  ASSERT_TRUE(manager_->Start().ok());
  publication_.WaitUntilLoaded();
  EXPECT_TRUE(publication_.Acquire("m", {}).ok());
  EXPECT_EQ(health_.Get("model/m"), ServingStatus::kServing);
}

// Clients are not to learn where on the host a model lies.
TEST_F(ManagerTest, WhatIsPublishedHasNoPaths) {
  Make({Config("gone", "gone")});
  ASSERT_TRUE(manager_->Start().ok());
  publication_.WaitUntilLoaded();
  for (const absl::Status& error :
       {publication_.Acquire("gone", {}).status(), publication_.Status("gone", {}).status()})
    EXPECT_THAT(error.ToString(), AllOf(HasSubstr("<base_path>"), Not(HasSubstr(root_))));
}

// Whoever hears that a configuration is active finds it in the table.
TEST_F(ManagerTest, AReloadEndsOnceItIsPublished) {
  Write("m/1/frozen.pb", TimesGraph(1));
  Make({});
  ASSERT_TRUE(manager_->Start().ok());
  std::promise<void> ended;
  StartReload({Config("m", "m")}, [&](const absl::Status& status) {
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(publication_.CurrentConfig().generation, 2);
    EXPECT_TRUE(publication_.Acquire("m", {}).ok());
    ended.set_value();
  });
  ended.get_future().wait();
}

TEST_F(ManagerTest, WhatIsPostedAfterItsEndIsDropped) {
  Make({});
  ASSERT_TRUE(manager_->Start().ok());
  manager_->StopThreads();
  std::atomic<bool> ran{false};
  EXPECT_FALSE(manager_->Post([&](Lifecycle*) { ran = true; }));
  absl::Status outcome;
  StartReload({}, [&](const absl::Status& status) { outcome = status; });
  EXPECT_EQ(outcome.code(), absl::StatusCode::kUnavailable) << outcome;
  EXPECT_FALSE(ran);
}

// A version that loads is not waited for: its load is given up.
TEST_F(ManagerTest, ItsEndGivesUpLoads) {
  Write("m/1/frozen.pb", TimesGraph(1));
  std::promise<void> loading;
  std::atomic<bool> go{false};
  options_.load_with = [&](const ModelConfig& config, const LoadSource& source) {
    loading.set_value();
    while (!go) std::this_thread::yield();
    return LoadModel(config, source, {}, MemoryBudget());
  };
  Make({Config("m", "m")});
  ASSERT_TRUE(manager_->Start().ok());
  loading.get_future().wait();
  std::thread stop([this] { manager_->StopThreads(); });
  while (manager_->Post([](Lifecycle*) {})) std::this_thread::yield();  // until it is stopping
  go = true;
  stop.join();
  EXPECT_FALSE(publication_.Acquire("m", {}).ok()) << "nobody publishes it";
  EXPECT_FALSE(publication_.Table()->settled);
}

}  // namespace
}  // namespace floe::server
