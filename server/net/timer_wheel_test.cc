#include "server/net/timer_wheel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <vector>

namespace floe::server {
namespace {

using ::testing::ElementsAre;

TEST(TimerWheel, FiresInTimeAndNotBefore) {
  FakeClock clock;
  TimerWheel wheel(clock.Now());
  std::vector<int> fired;
  Timer soon([&] { fired.push_back(1); }), later([&] { fired.push_back(2); }),
      far([&] { fired.push_back(3); }), cleared([&] { fired.push_back(4); });
  soon.Set(&wheel, clock.Now() + std::chrono::milliseconds(10));
  later.Set(&wheel, clock.Now() + std::chrono::seconds(6));
  far.Set(&wheel, clock.Now() + std::chrono::hours(3));
  cleared.Set(&wheel, clock.Now() + std::chrono::milliseconds(10));
  cleared.Clear();
  wheel.Run(clock.Now() + std::chrono::milliseconds(9));
  EXPECT_TRUE(fired.empty());
  clock.Advance(std::chrono::milliseconds(10) + 2 * TimerWheel::kTick);
  wheel.Run(clock.Now());
  EXPECT_THAT(fired, ElementsAre(1));
  clock.Advance(std::chrono::hours(4));
  wheel.Run(clock.Now());
  EXPECT_THAT(fired, ElementsAre(1, 2, 3));
  EXPECT_EQ(wheel.Next(), TimePoint::max());
}

// Against a sorted map, with random times, while time goes by in random steps.
TEST(TimerWheel, ManyTimersFireInOrderOfTheirTicks) {
  FakeClock clock;
  TimerWheel wheel(clock.Now());
  std::mt19937 random(1);
  std::multimap<TimePoint, int> expected;
  std::vector<std::unique_ptr<Timer>> timers;
  std::vector<TimePoint> fired(400, TimePoint::max());
  for (int i = 0; i < 400; ++i) {
    const TimePoint at = clock.Now() + std::chrono::milliseconds(random() % 20'000);
    timers.push_back(
        std::make_unique<Timer>([&, i] { fired[static_cast<size_t>(i)] = clock.Now(); }));
    timers.back()->Set(&wheel, at);
    expected.emplace(at, i);
  }
  for (int steps = 0; wheel.Next() != TimePoint::max(); ++steps) {
    ASSERT_LT(steps, 2000);
    clock.Advance(wheel.Next() - clock.Now());  // as a loop sleeps
    wheel.Run(clock.Now());
  }
  for (const auto& [at, i] : expected) {
    EXPECT_GE(fired[static_cast<size_t>(i)], at);
    EXPECT_LE(fired[static_cast<size_t>(i)], at + 2 * TimerWheel::kTick);
  }
}

TEST(TimerWheel, ATimerMaySetItselfAgain) {
  FakeClock clock;
  TimerWheel wheel(clock.Now());
  int fired = 0;
  std::unique_ptr<Timer> timer;
  timer = std::make_unique<Timer>([&] {
    if (++fired < 3) timer->Set(&wheel, clock.Now() + std::chrono::milliseconds(20));
  });
  timer->Set(&wheel, clock.Now());
  for (int i = 0; i < 20; ++i) {
    clock.Advance(std::chrono::milliseconds(20));
    wheel.Run(clock.Now());
  }
  EXPECT_EQ(fired, 3);
}

}  // namespace
}  // namespace floe::server
