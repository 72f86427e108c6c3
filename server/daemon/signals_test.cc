#include "server/daemon/signals.h"

#include <gtest/gtest.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <memory>

namespace floe::server {
namespace {

// A log whose reader has stopped reading.
class BlockedSink : public spdlog::sinks::base_sink<std::mutex> {
  void sink_it_(const spdlog::details::log_msg&) override {
    for (;;) pause();
  }
  void flush_() override {}
};

// Runs in a process of its own, with `asked` as what the first signal asks for.
void Raise(const std::function<TimePoint()>& asked, int signals) {
  BlockSignals();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("", std::make_shared<BlockedSink>()));
  SignalWatcher watcher(asked, [] {});
  for (int i = 0; i < signals; ++i) kill(getpid(), i == 0 ? SIGTERM : SIGINT);
  for (;;) pause();
}

class SignalsDeathTest : public testing::Test {
 protected:
  // Of a process with several threads, by starting the test anew.
  SignalsDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(SignalsDeathTest, TheFirstIsHeardWhateverTheLogDoes) {
  EXPECT_EXIT(Raise([]() -> TimePoint { _exit(7); }, 1), testing::ExitedWithCode(7), "");
}

TEST_F(SignalsDeathTest, TheSecondEndsWhateverTheLogDoes) {
  EXPECT_EXIT(Raise([] { return TimePoint::max(); }, 2), testing::ExitedWithCode(1), "");
}

TEST_F(SignalsDeathTest, DrainingThatDoesNotBeginHasAnEnd) {
  EXPECT_EXIT(Raise([] { return Clock::Steady().Now(); }, 1), testing::ExitedWithCode(1), "");
}

}  // namespace
}  // namespace floe::server
