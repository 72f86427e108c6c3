#include "server/registry/version_host.h"

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <future>
#include <utility>

#include "server/executor/test_models_for_test.h"

namespace floe::server {
namespace {

// A host whose loads are of a model in memory, and fail where the version is 0. This thread stands
// for the manager's: it runs what is reported.
class VersionHostTest : public testing::Test {
 protected:
  VersionHostTest() : host_(Options(), memory_, &watch_, tasks_, Reports()) {
    spdlog::set_level(spdlog::level::off);
    EXPECT_TRUE(host_.Start().ok());
    EXPECT_TRUE(tasks_->Start().ok());
  }
  ~VersionHostTest() override {
    tasks_->Stop();
    host_.StopThreads();
    host_.StopVersions();
  }

  // Has the manager's thread do it, and waits for that.
  void OnManager(const std::function<void()>& task) {
    std::promise<void> done;
    tasks_->Post([&] {
      task();
      done.set_value();
    });
    done.get_future().wait();
  }
  absl::Status Load(ServableId id, int64_t version) {
    loaded_ = {};
    LoadAction action;
    action.model = "m";
    action.id = id;
    action.version = version;
    action.config = std::make_shared<const ModelConfig>();
    action.unwanted = std::make_shared<CancelToken>();
    OnManager([&] { host_.Load(action, false); });
    return loaded_.get_future().get();
  }

  MemoryBudget memory_;
  LoadWatch watch_;
  std::promise<absl::Status> loaded_, unloaded_;
  const std::shared_ptr<TaskThreadPool> tasks_ =
      std::make_shared<TaskThreadPool>(1, ThreadTraits{"manager", 0, {}});
  RegistryOptions options_;
  VersionHost host_;

 private:
  const RegistryOptions& Options() {
    options_.load_with =
        [this](const ModelConfig& config,
               const LoadSource& source) -> absl::StatusOr<std::shared_ptr<LocalServed>> {
      if (source.version == 0) return absl::InvalidArgumentError("no model");
      return LoadModel(config, {source.version, "", kTwiceGraph}, {}, memory_);
    };
    return options_;
  }
  VersionHost::Reports Reports() {
    return {[this](const LoadAction&, const absl::Status& status,
                   const std::optional<FileIdentity>&) { loaded_.set_value(status); },
            [this](const std::string&, ServableId, const absl::Status& status) {
              unloaded_.set_value(status);
            }};
  }
};

TEST_F(VersionHostTest, ALoadThatFailsIsReported) {
  EXPECT_EQ(Load(1, 0).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(VersionHostTest, AVersionIsUnloadedWhenTheLastHandleGoes) {
  ASSERT_TRUE(Load(1, 7).ok());
  ServedHandle request;
  OnManager([&] { request = host_.Get(1).handle; });
  EXPECT_EQ(request->model()->info().version, 7);
  OnManager([&] { host_.Withdraw(1, Clock::Steady().Now()); });
  std::future<absl::Status> unloaded = unloaded_.get_future();
  EXPECT_EQ(unloaded.wait_for(std::chrono::seconds(0)), std::future_status::timeout)
      << "a request has it";
  request.reset();
  EXPECT_TRUE(unloaded.get().ok());
}

TEST_F(VersionHostTest, AHandleThatStaysIsNotWaitedForBeyondTheDrain) {
  ASSERT_TRUE(Load(1, 7).ok());
  const TimePoint now = Clock::Steady().Now();
  ServedHandle request;
  OnManager([&] {
    request = host_.Get(1).handle;
    host_.Withdraw(1, now);
    EXPECT_EQ(host_.EndLate(now), now + options_.drain);
    EXPECT_EQ(host_.EndLate(now + options_.drain), TimePoint::max());
  });
  EXPECT_TRUE(unloaded_.get_future().get().ok()) << "nothing of it was running";
  request.reset();
}

}  // namespace
}  // namespace floe::server
