#include "server/registry/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "server/batching/test_models.h"
#include "server/registry/model_path.h"

namespace floe::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A directory with the model and a batching_params.pbtxt.
class OwnBatching : public testing::Test {
 protected:
  OwnBatching() {
    spdlog::set_level(spdlog::level::off);
    folder_ = testing::TempDir() + "floe_loader";
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ + "/model.pb") << kTwiceGraph;
    config_.name = "twice";
    options_.own_batching_parameters = true;
  }
  ~OwnBatching() override { std::filesystem::remove_all(folder_); }

  absl::StatusOr<std::shared_ptr<LocalServed>> Load(const std::string& parameters) {
    std::ofstream(folder_ + "/batching_params.pbtxt") << parameters;
    auto found = FindNewestVersion(folder_);
    if (!found.ok()) return found.status();
    return LoadModel(config_, found->version, found->file, "", options_);
  }

  std::string folder_;
  ModelConfig config_;
  LoadOptions options_;
};

TEST_F(OwnBatching, GoesBeforeTheModels) {
  config_.batching.max_batch_size = 64;
  auto served = Load("max_batch_size { value: 2 } enable_large_batch_splitting { value: false }");
  ASSERT_TRUE(served.ok()) << served.status();
  FloatCall call({{Shape({3, 2}), {1, 2, 3, 4, 5, 6}}});
  (*served)->Submit(call.Request((*served)->model()));
  (*served)->batcher().Stop();
  EXPECT_EQ(call.answers, 1);
  EXPECT_THAT(call.status.ToString(), HasSubstr("max_batch_size"));
}

TEST_F(OwnBatching, MistakesKeepTheVersionOut) {
  EXPECT_THAT(Load("max_batch_size { value: 0 }").status().ToString(),
              AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr("batching_params.pbtxt:1: ")));
}

TEST_F(OwnBatching, IsNotReadUnlessAskedFor) {
  options_.own_batching_parameters = false;
  const auto served = Load("max_batch_size { value: 0 }");
  ASSERT_TRUE(served.ok()) << served.status();
  (*served)->batcher().Stop();
}

}  // namespace
}  // namespace floe::server
