#include "server/daemon/signals.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <string>

#include "server/daemon/logging.h"

namespace floe::server {
namespace {

// Makes stderr a pipe that is full and that nobody reads.
void BlockStderr() {
  int ends[2];
  if (pipe2(ends, O_NONBLOCK) != 0) _exit(99);
  const std::string some(4096, 'x');
  while (write(ends[1], some.data(), some.size()) > 0) {
  }
  fcntl(ends[1], F_SETFL, 0);
  dup2(ends[1], STDERR_FILENO);
}

// Runs in a process of its own, with `asked` as what the first signal asks for.
void Raise(const std::function<TimePoint()>& asked, int signals) {
  BlockSignals();
  BlockStderr();
  if (!InitLogging({}).ok()) _exit(98);
  for (int i = 0; i < 1000; ++i) spdlog::info("{}", std::string(10000, 'y'));
  SignalWatcher watcher(asked, [] {});
  for (int i = 0; i < signals; ++i) kill(getpid(), i == 0 ? SIGTERM : SIGINT);
  for (;;) pause();
}

class SignalsDeathTest : public testing::Test {
 protected:
  // Of a process with several threads, by starting the test again.
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
