#include "server/daemon/config_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace floe::server {
namespace {

using ::testing::ElementsAre;

// Files hold the names of models, one a line; "bad" cannot be read.
class ConfigWatchTest : public testing::Test {
 protected:
  ConfigWatchTest() {
    spdlog::set_level(spdlog::level::off);
    path_ = testing::TempDir() + "floe_config_watch_" +
            testing::UnitTest::GetInstance()->current_test_info()->name();
    Write("one");
  }
  ~ConfigWatchTest() override { std::filesystem::remove(path_); }

  void Write(const std::string& text) {
    std::ofstream(path_) << text;
    // Times of files are coarser than a test is fast.
    std::filesystem::last_write_time(
        path_, std::filesystem::file_time_type(std::chrono::seconds(++writes_)));
  }
  absl::StatusOr<ServerConfig> Read() {
    ++reads_;
    std::ifstream file(path_);
    ServerConfig config;
    config.source.files = {path_};
    for (std::string name; file >> name;) {
      if (name == "deaf") config.lifecycle.file_system_poll_wait_seconds = 0;
      if (name == "bad") return absl::InvalidArgumentError("it is bad");
      config.models.emplace_back();
      config.models.back().name = name;
      config.source.content_hash = config.source.content_hash * 31 + std::hash<std::string>()(name);
    }
    return config;
  }
  void Make(Duration poll) { Make(poll, *Read()); }
  void Make(Duration poll, ServerConfig at_start) {
    ConfigWatch::Options options;
    options.config = std::move(at_start);
    options.poll = poll;
    options.clock = &clock_;
    options.read = [this](const ServerConfig&) { return Read(); };
    options.apply = [this](std::vector<ModelConfig> models, TimePoint deadline) {
      EXPECT_GT(deadline, clock_.Now());
      std::string names;
      for (const ModelConfig& model : models) names += model.name + " ";
      applied_.push_back(names);
      return apply_status_;
    };
    options.failed = [this](const absl::Status& status) { failed_ = status; };
    watch_ = std::make_unique<ConfigWatch>(std::move(options));
  }
  void Look(int times) {
    for (int i = 0; i < times; ++i) {
      clock_.Advance(kPoll);
      watch_->Step();
    }
  }

  static constexpr Duration kPoll = std::chrono::seconds(5);

  FakeClock clock_;
  std::string path_;
  int writes_ = 0, reads_ = 0;
  std::vector<std::string> applied_;
  absl::Status apply_status_, failed_;
  std::unique_ptr<ConfigWatch> watch_;
};

TEST_F(ConfigWatchTest, FollowsTheFileAtTheIntervalAndOnlyWhatChanges) {
  Make(kPoll);
  Write("one two");
  watch_->Step();
  watch_->Step();
  EXPECT_THAT(applied_, ElementsAre()) << "it is not time yet";
  Look(2);
  EXPECT_THAT(applied_, ElementsAre("one two "));
  Look(2);
  Write("one two");  // touched
  Look(2);
  EXPECT_THAT(applied_, ElementsAre("one two "));
}

TEST_F(ConfigWatchTest, AFileThatIsStillBeingWrittenIsNotRead) {
  Make(kPoll);
  Look(2);
  const int reads = reads_;
  Write("");
  Look(1);
  Write("one");
  Look(1);
  Write("one two");
  Look(1);
  EXPECT_EQ(reads_, reads);
  Look(1);
  EXPECT_THAT(applied_, ElementsAre("one two "));
  // Told to, it reads what there is, and what comes after that too.
  Write("");
  watch_->ReloadNow();
  watch_->Step();
  EXPECT_THAT(applied_, ElementsAre("one two ", ""));
  Write("three");
  Look(2);
  EXPECT_THAT(applied_, ElementsAre("one two ", "", "three "));
}

TEST_F(ConfigWatchTest, AChangeBeforeTheFirstLookIsSeen) {
  ServerConfig at_start = *Read();
  Write("one two");
  Make(kPoll, std::move(at_start));
  Look(2);
  EXPECT_THAT(applied_, ElementsAre("one two "));
}

TEST_F(ConfigWatchTest, ABadFileIsSaidAndTriedAgainOnlyWhenItChanges) {
  Make(kPoll);
  Write("bad");
  Look(2);
  EXPECT_EQ(failed_, absl::InvalidArgumentError("it is bad"));
  const int reads = reads_;
  Look(2);
  EXPECT_EQ(reads_, reads);
  Write("three");
  Look(2);
  EXPECT_THAT(applied_, ElementsAre("three "));
}

TEST_F(ConfigWatchTest, ToldToItReloadsWhateverHasChanged) {
  Make(Duration::zero());
  watch_->Step();
  EXPECT_THAT(applied_, ElementsAre());
  watch_->ReloadNow();
  watch_->Step();
  watch_->Step();
  EXPECT_THAT(applied_, ElementsAre("one "));
  // One that failed can be tried again as it is.
  apply_status_ = absl::UnavailableError("not today");
  Write("two");
  for (int i = 0; i < 2; ++i) {
    watch_->ReloadNow();
    watch_->Step();
  }
  EXPECT_THAT(applied_, ElementsAre("one ", "two ", "two "));
}

TEST_F(ConfigWatchTest, TheLogNamesWhatNeedsARestart) {
  std::ostringstream text;
  const auto usual = spdlog::default_logger();
  const auto sink = std::make_shared<spdlog::sinks::ostream_sink_st>(text);
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("config_watch_test", sink));
  Make(Duration::zero());
  const auto reload = [&](const std::string& models) {
    text.str("");
    Write(models);
    watch_->ReloadNow();
    watch_->Step();
    return text.str();
  };
  const auto named = testing::HasSubstr("lifecycle.file_system_poll_wait_seconds: 1 -> 0");
  EXPECT_EQ(reload("two"), "");
  EXPECT_THAT(reload("deaf"), named);
  EXPECT_THAT(reload("deaf two"), named) << "it still differs from what floed runs with";
  EXPECT_EQ(reload("two"), "");
  spdlog::set_default_logger(usual);
}

TEST_F(ConfigWatchTest, TheThreadHearsOfBothAndEnds) {
  Make(Duration::zero());
  watch_->ReloadNow();
  watch_->Start();
  watch_->Stop();
  EXPECT_LE(applied_.size(), 1u);
}

}  // namespace
}  // namespace floe::server
