#include "server/daemon/config_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <optional>
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
    options.apply = [this](const ReloadRequest& request) {
      by_ = request.who;
      return Apply(request.models, request.deadline, request.replaces);
    };
    options.generation = [this] { return generation_; };
    options.note = [this](const absl::Status& status) { noted_ = status; };
    watch_ = std::make_unique<ConfigWatch>(std::move(options));
  }
  absl::Status Apply(const std::vector<ModelConfig>& models, TimePoint deadline,
                     std::optional<int64_t> replaces) {
    EXPECT_GT(deadline, clock_.Now());
    EXPECT_EQ(replaces.value_or(generation_), generation_);
    std::string names;
    for (const ModelConfig& model : models) names += model.name + " ";
    applied_.push_back(names);
    if (apply_status_.ok()) ++generation_;
    on_applied_();
    return apply_status_;
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
  absl::Status apply_status_, noted_;
  std::string by_;
  int64_t generation_ = 1;
  std::function<void()> on_applied_ = [] {};
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
  EXPECT_EQ(by_, "a change of its files");
  // When asked to, it reads what there is, and what comes after that too.
  Write("");
  watch_->ReloadNow();
  watch_->Step();
  EXPECT_THAT(applied_, ElementsAre("one two ", ""));
  EXPECT_EQ(by_, "SIGHUP");
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
  EXPECT_EQ(noted_, absl::InvalidArgumentError("it is bad"));
  const int reads = reads_;
  Look(2);
  EXPECT_EQ(reads_, reads);
  Write("three");
  Look(2);
  EXPECT_THAT(applied_, ElementsAre("three "));
}

TEST_F(ConfigWatchTest, AFileThatIsAsItWasAgainIsNoMistakeAnyMore) {
  Make(kPoll);
  for (const bool readable : {false, true}) {
    apply_status_ = readable ? absl::NotFoundError("no such model") : absl::OkStatus();
    Write(readable ? "missing" : "bad");
    Look(2);
    noted_ = absl::UnknownError("nothing was noted");
    Write("one");
    Look(2);
    EXPECT_TRUE(noted_.ok()) << noted_;
  }
  Look(20);
  EXPECT_THAT(applied_, ElementsAre("missing "));
}

TEST_F(ConfigWatchTest, WhatFailsForAReasonThatMayPassIsTriedAgainLessAndLessOften) {
  Make(kPoll);
  for (const absl::Status& error :
       {absl::NotFoundError("no such directory"), absl::UnavailableError("the disk is away"),
        absl::DeadlineExceededError("late"), absl::ResourceExhaustedError("no memory"),
        absl::FailedPreconditionError("a label without its version")}) {
    SCOPED_TRACE(error);
    applied_.clear();
    apply_status_ = error;
    Write("one two");
    Look(2);
    std::vector<Duration> tries;
    const TimePoint start = clock_.Now();
    for (int scan = 0; scan < 48; ++scan) {
      const size_t before = applied_.size();
      Look(1);
      if (applied_.size() > before) tries.push_back(clock_.Now() - start);
    }
    const auto s = [](int n) { return std::chrono::seconds(n); };
    EXPECT_THAT(tries, ElementsAre(s(10), s(30), s(70), s(130), s(190)));
    apply_status_ = absl::OkStatus();
    Look(12);
    EXPECT_THAT(applied_, testing::SizeIs(tries.size() + 2))
        << "it holds: once more and no further";
    Write("one");
    Look(2);
  }
}

TEST_F(ConfigWatchTest, WhatCannotPassIsNotTriedAgain) {
  Make(kPoll);
  apply_status_ = absl::InvalidArgumentError("no such op");
  Write("one two");
  Look(50);
  EXPECT_THAT(applied_, ElementsAre("one two "));
}

// Neither files that changed since, nor a configuration that came by other ways, are overwritten by
// an older one.
TEST_F(ConfigWatchTest, TriesEndWhenSomethingNewerIsThere) {
  Make(kPoll);
  apply_status_ = absl::NotFoundError("no such directory");
  Write("two");
  Look(2);
  Write("three");
  Look(1);
  Look(1);
  EXPECT_THAT(applied_, ElementsAre("two ", "three "));
  ++generation_;
  apply_status_ = absl::OkStatus();
  Look(50);
  EXPECT_THAT(applied_, ElementsAre("two ", "three "));
  Write("four");
  Look(2);
  EXPECT_THAT(applied_, ElementsAre("two ", "three ", "four "));
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

// Before the thread waits, while it works and while it waits: no call is lost.
TEST_F(ConfigWatchTest, TheThreadHearsOfEveryCallAndEnds) {
  Make(Duration::zero());
  std::promise<void> entered, leave, again;
  int calls = 0;
  on_applied_ = [&] {
    if (++calls == 1) {
      entered.set_value();
      leave.get_future().wait();
    } else {
      again.set_value();
    }
  };
  watch_->ReloadNow();
  ASSERT_TRUE(watch_->Start().ok());
  entered.get_future().wait();
  watch_->ReloadNow();
  leave.set_value();
  again.get_future().wait();
  watch_->Stop();
  EXPECT_THAT(applied_, ElementsAre("one ", "one "));
}

TEST_F(ConfigWatchTest, WhoAsksHearsWhatCameOfIt) {
  Make(Duration::zero());
  ASSERT_TRUE(watch_->Start().ok());
  const auto ask = [this] {
    auto result = std::make_shared<std::promise<absl::Status>>();
    watch_->ReloadNow([result](const absl::Status& status) { result->set_value(status); });
    return result->get_future().get();
  };
  EXPECT_TRUE(ask().ok());
  EXPECT_THAT(applied_, ElementsAre("one "));
  Write("bad");
  EXPECT_TRUE(absl::IsInvalidArgument(ask()));
  Write("two");
  apply_status_ = absl::NotFoundError("no files");
  EXPECT_TRUE(absl::IsNotFound(ask()));
  watch_->Stop();
  EXPECT_TRUE(absl::IsUnavailable(ask()));
}

}  // namespace
}  // namespace floe::server
