// batching_params.pbtxt beside a model's file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "server/executor/test_models_for_test.h"
#include "server/loading/prepare.h"

namespace floe::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class OwnBatching : public testing::Test {
 protected:
  OwnBatching() {
    folder_ = testing::TempDir() + "floe_own_batching";
    std::filesystem::create_directories(folder_);
    auto imported = ImportBytes(kTwiceGraph, {});
    Model::Source source;
    source.info = {"twice", 1, folder_ + "/frozen.pb"};
    source.graph = std::move(imported->graph);
    source.signatures = std::move(imported->signatures);
    model_ = Model::Create(std::move(source), {}).value();
    config_.name = "twice";
    config_.workers = 2;
    config_.batching.max_batch_size = 64;
    config_.batching.batch_timeout_micros = 7;
  }
  ~OwnBatching() override { std::filesystem::remove_all(folder_); }

  absl::StatusOr<SchedulerSetup> Prepare(const std::string& parameters, bool asked) {
    std::ofstream(folder_ + "/batching_params.pbtxt") << parameters;
    PrepareOptions options;
    options.own_batching_parameters = asked;
    return PrepareScheduler(*model_, config_, options);
  }

  std::string folder_;
  ModelHandle model_;
  ModelConfig config_;
};

TEST_F(OwnBatching, StandsInPlaceOfTheConfiguredOne) {
  const std::string parameters = "max_batch_size { value: 2 } num_batch_threads { value: 3 }";
  auto setup = Prepare(parameters, true);
  ASSERT_TRUE(setup.ok()) << setup.status();
  EXPECT_EQ(setup->options.limits.max_rows, 2);
  EXPECT_EQ(setup->options.limits.timeout, Duration::zero()) << "not said, so the default";
  EXPECT_EQ(setup->options.threads, 2) << "threads are the server's";
  EXPECT_THAT(setup->notes, testing::Contains(HasSubstr("num_batch_threads has no effect")));
  setup = Prepare(parameters, false);
  ASSERT_TRUE(setup.ok()) << setup.status();
  EXPECT_EQ(setup->options.limits.max_rows, 64);
  EXPECT_EQ(setup->options.limits.timeout, std::chrono::microseconds(7));
}

TEST_F(OwnBatching, MistakesKeepTheVersionOut) {
  EXPECT_THAT(Prepare("max_batch_size { value: 0 }", true).status().ToString(),
              AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr("batching_params.pbtxt:1: ")));
  EXPECT_TRUE(Prepare("max_batch_size { value: 0 }", false).ok());
}

TEST_F(OwnBatching, NeedNotBeThere) {
  PrepareOptions options;
  options.own_batching_parameters = true;
  const auto setup = PrepareScheduler(*model_, config_, options);
  ASSERT_TRUE(setup.ok()) << setup.status();
  EXPECT_EQ(setup->options.limits.max_rows, 64);
}

}  // namespace
}  // namespace floe::server
