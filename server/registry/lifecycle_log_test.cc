#include "server/registry/lifecycle_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

#include "server/registry/lifecycle_world_for_test.h"

namespace floe::server {
namespace {

using std::chrono::seconds;

ModelConfig Placed() {
  ModelConfig config = TestModel("m");
  config.where = "f.yaml:3";
  return config;
}

// What the log is told of a world, as "level: text" lines. The process's log is put back at the
// end.
class LifecycleLogTest : public testing::Test {
 protected:
  LifecycleLogTest() : before_(spdlog::default_logger()) {
    auto logger = std::make_shared<spdlog::logger>(
        "lifecycle_log_test", std::make_shared<spdlog::sinks::ostream_sink_st>(text_));
    logger->set_level(spdlog::level::info);
    logger->set_pattern("%l: %v");
    spdlog::set_default_logger(std::move(logger));
  }
  ~LifecycleLogTest() override { spdlog::set_default_logger(before_); }

  std::string Said(LifecycleWorld& world) {
    text_.str("");
    log_.Report(world.lifecycle(), world.lifecycle().TakeChanges().models);
    return text_.str();
  }

 private:
  const std::shared_ptr<spdlog::logger> before_;
  std::ostringstream text_;
  LifecycleLog log_;
};

TEST_F(LifecycleLogTest, SaysOnceWhatFailedAndWhy) {
  ServingWorld world(Placed());
  EXPECT_EQ(Said(world), "") << "that it is loaded is said by the one who loads";
  world.Put("/m", 2);
  world.Break("m", 2, kBadModel);
  world.Advance(seconds(1));
  world.Finish();
  EXPECT_EQ(Said(world), "error: f.yaml:3: model 'm' version 2 is not served: this is no model\n");
  EXPECT_EQ(Said(world), "");
  world.Put("/m", 3);
  world.Break("m", 3, absl::UnavailableError("the disk is slow"));
  world.Advance(seconds(1));
  world.Finish();
  EXPECT_EQ(Said(world),
            "warning: f.yaml:3: model 'm' version 3 is not served yet: the disk is slow\n");
  // The same version with another error is news.
  world.Break("m", 3, absl::UnavailableError("the disk is gone"));
  world.Advance(seconds(60));
  world.Finish();
  EXPECT_EQ(Said(world),
            "warning: f.yaml:3: model 'm' version 3 is not served yet: the disk is gone\n");
  world.Break("m", 3, kBadModel);
  world.Advance(seconds(60));
  world.Finish();
  EXPECT_EQ(Said(world), "error: f.yaml:3: model 'm' version 3 is not served: this is no model\n");
}

TEST_F(LifecycleLogTest, AFreshCopyIsNoWarning) {
  ServingWorld world(Placed());
  EXPECT_EQ(Said(world), "");
  world.Put("/m", 2, /*stamp=*/1, /*quiet=*/Duration::zero());
  world.Advance(seconds(1));
  EXPECT_EQ(
      Said(world),
      "info: f.yaml:3: model 'm' version 2 is not loaded yet: its files have just changed; it "
      "is loaded once they stay the same\n");
}

TEST_F(LifecycleLogTest, SaysWhichVersionLeaves) {
  ServingWorld world(Placed());
  world.Put("/m", 2);
  world.Advance(seconds(1));
  world.FinishLoad();
  EXPECT_EQ(Said(world), "info: model 'm' version 1 is being unloaded\n");
  world.FinishUnload();
  EXPECT_EQ(Said(world), "info: model 'm' version 1 is unloaded\n");
  EXPECT_EQ(Said(world), "");
}

TEST_F(LifecycleLogTest, APlaceThatIsGoneIsSaidOnceAndAgainWhenItHasComeBack) {
  ServingWorld world(Placed());
  for (const bool again : {false, true}) {
    world.Unmount("/m");
    world.Advance(seconds(1));
    const std::string said = Said(world);
    EXPECT_THAT(said, testing::StartsWith("error: f.yaml:3: model 'm': ")) << again;
    EXPECT_THAT(said, testing::EndsWith("; what was loaded before stays in service\n"));
    world.Advance(seconds(1));
    EXPECT_EQ(Said(world), "") << "nothing is new";
    world.Put("/m", 1);
    world.Advance(seconds(1));
    EXPECT_EQ(Said(world), "");
  }
}

TEST_F(LifecycleLogTest, OfAModelWithoutVersionsOnlyItsPlaceIsSpokenOf) {
  LifecycleWorld world({Placed()});
  world.Finish();
  const std::string said = Said(world);
  EXPECT_THAT(said, testing::StartsWith("error: f.yaml:3: model 'm': "));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  EXPECT_THAT(said, testing::Not(testing::HasSubstr("stays in service")));
}

}  // namespace
}  // namespace floe::server
