#include "base/alarm_thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace floe {
namespace {

using std::chrono::milliseconds;

TEST(AlarmThread, RingsInTheOrderOfTimes) {
  const auto thread = std::make_shared<AlarmThread>("alarms");
  std::promise<void> began, go_on, last;
  std::vector<int> order;
  Alarm first(thread, [&] {
    began.set_value();
    go_on.get_future().wait();
  });
  Alarm a(thread, [&] { order.push_back(1); }), b(thread, [&] { order.push_back(2); });
  Alarm c(thread, [&] {
    order.push_back(3);
    last.set_value();
  });
  first.Set(TimePoint::min());
  began.get_future().wait();  // nothing else rings meanwhile
  const TimePoint now = Clock::Steady().Now();
  c.Set(now);
  b.Set(now - milliseconds(1));
  a.Set(now - milliseconds(2));
  go_on.set_value();
  last.get_future().wait();
  EXPECT_THAT(order, testing::ElementsAre(1, 2, 3));
}

TEST(AlarmThread, TheLastTimeCounts) {
  const auto thread = std::make_shared<AlarmThread>("alarms");
  std::promise<void> rang;
  int rings = 0;
  Alarm never(thread, [&] { ++rings; });
  Alarm soon(thread, [&] { rang.set_value(); });
  never.Set(Clock::Steady().Now() + std::chrono::hours(1));
  never.Set(TimePoint::max());
  soon.Set(Clock::Steady().Now() + std::chrono::hours(1));
  soon.Set(Clock::Steady().Now() + milliseconds(1));
  rang.get_future().wait();
  EXPECT_EQ(rings, 0);
}

TEST(AlarmThread, MayBeSetWhileItRings) {
  const auto thread = std::make_shared<AlarmThread>("alarms");
  std::promise<void> done;
  int rings = 0;
  std::unique_ptr<Alarm> alarm;
  alarm = std::make_unique<Alarm>(thread, [&] {
    if (++rings == 3) return done.set_value();
    alarm->Set(TimePoint::min());
  });
  alarm->Set(TimePoint::min());
  done.get_future().wait();
  alarm.reset();
  EXPECT_EQ(rings, 3);
}

TEST(AlarmThread, AnAlarmThatRingsIsWaitedFor) {
  const auto thread = std::make_shared<AlarmThread>("alarms");
  std::promise<void> began, go_on;
  bool ended = false;
  auto alarm = std::make_unique<Alarm>(thread, [&] {
    began.set_value();
    go_on.get_future().wait();
    ended = true;
  });
  alarm->Set(TimePoint::min());
  began.get_future().wait();
  std::thread other([&] { go_on.set_value(); });
  alarm.reset();
  EXPECT_TRUE(ended);
  other.join();
}

// Who rings may use the alarm to the end, also while another thread stops it.
TEST(AlarmThread, AStoppedAlarmMayBeSetAndDoesNotRing) {
  const auto thread = std::make_shared<AlarmThread>("alarms");
  std::promise<void> began, go_on, rang;
  std::optional<Alarm> alarm;
  int rings = 0;
  alarm.emplace(thread, [&] {
    if (++rings == 1) {
      began.set_value();
      go_on.get_future().wait();
    }
    alarm->Set(TimePoint::min());
  });
  alarm->Set(TimePoint::min());
  began.get_future().wait();
  std::thread other([&] { go_on.set_value(); });  // it rings and sets itself until it is stopped
  alarm->Stop();
  other.join();
  const int rings_until_stopped = rings;
  alarm->Set(TimePoint::min());
  alarm->Stop();
  Alarm after(thread, [&] { rang.set_value(); });
  after.Set(Clock::Steady().Now());
  rang.get_future().wait();
  EXPECT_EQ(rings, rings_until_stopped);
}

}  // namespace
}  // namespace floe
