#include "server/daemon/probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include "server/daemon/logging.h"

namespace floe::server {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;

struct Harness {
  explicit Harness(Duration every = seconds(10)) : interval(every) {
    spdlog::set_level(spdlog::level::off);
  }
  FakeClock clock;
  absl::Status answer;
  int asked = 0, fed = 0, watched = 0;
  Duration interval = seconds(10), timeout = {};
  std::function<void(CancelToken*)> meanwhile;
  std::vector<bool> changes;
  Probe probe{{.ask =
                   [this](Duration given, CancelToken* token) {
                     ++asked;
                     timeout = given;
                     if (meanwhile) meanwhile(token);
                     return answer;
                   },
               .feed = [this] { ++fed; },
               .on_change = [this](bool ok) { changes.push_back(ok); },
               .watch_models = [this](TimePoint) { ++watched; },
               .interval = interval,
               .clock = &clock}};
  void StepAndWait() {
    probe.Step();
    clock.Advance(seconds(10));
  }
};

TEST(Probe, FeedsOnlyAfterAGoodAnswer) {
  Harness h;
  h.StepAndWait();
  EXPECT_EQ(h.fed, 1);
  h.answer = absl::DeadlineExceededError("silent");
  h.StepAndWait();
  EXPECT_EQ(h.fed, 1);
  EXPECT_THAT(h.changes, ElementsAre()) << "once is no news";
  h.StepAndWait();
  h.StepAndWait();
  EXPECT_EQ(h.fed, 1);
  h.answer = absl::OkStatus();
  h.StepAndWait();
  h.StepAndWait();
  EXPECT_EQ(h.fed, 3);
  EXPECT_THAT(h.changes, ElementsAre(false, true));
}

TEST(Probe, AsksOncePerIntervalButWatchesInEveryStep) {
  Harness h;
  for (int i = 0; i < 10; ++i) {
    h.probe.Step();
    h.clock.Advance(seconds(1));
  }
  EXPECT_EQ(h.asked, 1);
  EXPECT_EQ(h.watched, 10);
  h.probe.Step();
  EXPECT_EQ(h.asked, 2);
}

// The watchdog's interval is four times the probe's.
TEST(Probe, AnUnansweredProbeEndsInTimeForTheWatchdog) {
  for (const Duration interval :
       {Duration(seconds(30)), Duration(std::chrono::milliseconds(250))}) {
    Harness h(interval);
    h.StepAndWait();
    EXPECT_LE(h.timeout, seconds(10));
    EXPECT_LE(interval + h.timeout, 3 * interval);
  }
}

TEST(Probe, StoppingDoesNotWaitForAnAnswer) {
  Harness h;
  Mutex mutex;
  CondVar changed;
  bool asked = false, cancelled = false;
  h.meanwhile = [&](CancelToken* token) {
    token->SetListener(this, [&] {
      MutexLock lock(mutex);
      cancelled = true;
      changed.NotifyAll();
    });
    MutexLock lock(mutex);
    asked = true;
    changed.NotifyAll();
    while (!cancelled) changed.Wait(mutex);
  };
  ASSERT_TRUE(h.probe.Start().ok());
  {
    MutexLock lock(mutex);
    while (!asked) changed.Wait(mutex);
  }
  h.probe.Stop();
  EXPECT_TRUE(cancelled);
}

TEST(Probe, DrainingFeedsWithoutAsking) {
  Harness h;
  h.answer = absl::UnavailableError("no listener");
  h.probe.Drain();
  h.StepAndWait();
  h.StepAndWait();
  EXPECT_EQ(h.asked, 0);
  EXPECT_EQ(h.fed, 2);
  EXPECT_THAT(h.changes, ElementsAre());
}

TEST(Logging, JsonEscapes) {
  EXPECT_EQ(JsonEscaped("a\"b\\c\nd\x01"), "a\\\"b\\\\c\\u000ad\\u0001");
  spdlog::memory_buf_t out;
  const auto formatter = MakeJsonFormatter();
  spdlog::details::log_msg msg(spdlog::log_clock::time_point(std::chrono::milliseconds(1500)), {},
                               "x", spdlog::level::warn, "say \"hi\"");
  formatter->format(msg, out);
  EXPECT_EQ(std::string(out.data(), out.size()),
            "{\"time\":\"1970-01-01T00:00:01.500Z\",\"level\":\"warning\",\"message\":\"say "
            "\\\"hi\\\"\"}\n");
}

}  // namespace
}  // namespace floe::server
