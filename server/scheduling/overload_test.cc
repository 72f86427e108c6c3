// What the scheduler does with more requests than it can answer in time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "server/scheduling/scheduler_for_test.h"

namespace floe::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

TEST(Overload, RefusesWhatIsExpectedToBeLate) {
  Stepped s({.max_rows = 2});
  s.executor->row_takes = milliseconds(10);
  s.executor->on_run = [&s](absl::Span<const Bound* const> batch) {
    for (const Bound* one : batch) s.clock.Advance(milliseconds(10) * one->binding.rows);
  };
  const auto due = [&s](int ms) { return s.clock.Now() + milliseconds(ms); };
  Call first({1}), second({2}), third({3}), fits({4}), hopeless({5}), patient({6});
  s.scheduler->Submit(first.MakeRequest(due(1)));  // nothing waits, so it is tried
  s.scheduler->Submit(second.MakeRequest());
  s.scheduler->Submit(third.MakeRequest());
  // Its own run of 10 ms behind three more, and a quarter of their time.
  s.scheduler->Submit(hopeless.MakeRequest(due(47)));
  hopeless.ExpectCode(absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(hopeless.status.message()), HasSubstr("may take 47.5 ms"));
  s.scheduler->Submit(fits.MakeRequest(due(48)));
  s.scheduler->Submit(patient.MakeRequest());
  EXPECT_EQ(s.scheduler->Stats()[Outcome::kRefusedLate], 1u);
  s.Drain();
  for (Call* call : {&second, &third, &fits, &patient}) call->ExpectDoubled();

  // Urgent requests do not count what they will overtake.
  Call slow({1, 2}), urgent({3});
  s.scheduler->Submit(slow.MakeRequest());
  auto request = urgent.MakeRequest(due(11));
  request.priority = 1;
  s.scheduler->Submit(std::move(request));
  s.Drain();
  urgent.ExpectDoubled();
}

TEST(Overload, TheQueueIsFullWhenItsWorkTakesTooLong) {
  FakeClock clock;
  auto executor = std::make_unique<Doubler>();
  executor->row_takes = seconds(2);
  Scheduler scheduler(std::move(executor), {.limits = {.max_rows = 1},
                                            .threads = 0,
                                            .clock = &clock,
                                            .name = "m",
                                            .max_enqueued_time = seconds(5)});
  Call long_one({1, 2, 3}), second({4}), third({5}), fits({6});
  scheduler.Submit(long_one.MakeRequest());  // 6 s, but nothing waits
  scheduler.Submit(second.MakeRequest());
  second.ExpectCode(absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status.message()), HasSubstr("expected to take 6000 ms"));
  while (scheduler.Step()) {
  }
  long_one.ExpectDoubled();
  scheduler.Submit(third.MakeRequest());
  scheduler.Submit(fits.MakeRequest());
  while (scheduler.Step()) {
  }
  third.ExpectDoubled();
  fits.ExpectDoubled();
}

// What one slow hour taught must not outlast it.
TEST(Overload, WhatIsAlwaysRefusedRunsNowAndThen) {
  Stepped s({.max_rows = 1});
  s.executor->row_takes = milliseconds(10);
  Duration takes = seconds(1);
  s.executor->on_run = [&](absl::Span<const Bound* const>) { s.clock.Advance(takes); };
  const auto due = [&s] { return s.clock.Now() + milliseconds(100); };
  const auto ask = [&] {  // behind another bucket's request, which always waits
    Call ahead({1}, /*b=*/7), call({2});
    s.scheduler->Submit(ahead.MakeRequest());
    s.scheduler->Submit(call.MakeRequest(due()));
    s.Drain();
    return call.status.code();
  };
  for (int i = 0; i < 20; ++i) {
    Call slow({1});
    s.scheduler->Submit(slow.MakeRequest());
    s.Drain();
  }
  takes = milliseconds(1);
  EXPECT_EQ(ask(), absl::StatusCode::kDeadlineExceeded);
  s.clock.Advance(milliseconds(900));
  EXPECT_EQ(ask(), absl::StatusCode::kDeadlineExceeded);
  int refused = 0, tried = 0;
  while (refused < 1000 && tried < 100) {
    s.clock.Advance(milliseconds(500));
    ++(ask() == absl::StatusCode::kOk ? tried : refused);
  }
  EXPECT_EQ(tried, 100) << refused << " refused";
}

TEST(Overload, ExpectationsFollowWhatRunsTake) {
  Stepped s({.max_rows = 1});
  s.executor->row_takes = milliseconds(10);
  s.executor->on_run = [&s](absl::Span<const Bound* const>) { s.clock.Advance(milliseconds(20)); };
  for (int i = 0; i < 100; ++i) {
    Call call({1});
    s.scheduler->Submit(call.MakeRequest());
    s.Drain();
  }
  Call ahead({1}), hopeless({2}), fits({3});
  s.scheduler->Submit(ahead.MakeRequest());
  s.scheduler->Submit(hopeless.MakeRequest(s.clock.Now() + milliseconds(43)));
  hopeless.ExpectCode(absl::StatusCode::kDeadlineExceeded);
  s.scheduler->Submit(fits.MakeRequest(s.clock.Now() + milliseconds(46)));
  s.Drain();
  fits.ExpectDoubled();
}

// Parts of a large request take turns with others.
TEST(Overload, ASmallRequestIsNotRefusedForTheWholeOfALargeOne) {
  Stepped s({.max_rows = 4});
  s.executor->row_takes = milliseconds(1);
  s.executor->on_run = [&s](absl::Span<const Bound* const> batch) {
    for (const Bound* one : batch) s.clock.Advance(milliseconds(1) * one->binding.rows);
  };
  Call large(std::vector<int64_t>(600, 1)), small({2}), hopeless(std::vector<int64_t>(80, 3));
  s.scheduler->Submit(large.MakeRequest());
  ASSERT_TRUE(s.scheduler->Step());
  s.scheduler->Submit(small.MakeRequest(s.clock.Now() + milliseconds(15)));
  s.scheduler->Submit(hopeless.MakeRequest(s.clock.Now() + milliseconds(150)));
  hopeless.ExpectCode(absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(s.scheduler->Stats()[Outcome::kRefusedLate], 1u)
      << "its parts take turns with the other's";
  for (int step = 0; step < 3 && small.answers == 0; ++step) ASSERT_TRUE(s.scheduler->Step());
  small.ExpectDoubled();
  s.Drain();
  large.ExpectDoubled();
}

// Requests come half as fast again as they can be answered, each answer spends a while on its way,
// and its caller counts that. Nearly all the work done must still be of use to somebody.
TEST(Overload, WhatIsAdmittedIsAnsweredInTime) {
  constexpr milliseconds kPatience(200), kOnTheWay(10), kRow(6), kInterval(4);
  Stepped s({.max_rows = 8});
  s.executor->row_takes = kRow;
  std::deque<Call> calls;
  int64_t useful = 0;
  const TimePoint start = s.clock.Now(), end = start + seconds(10);
  TimePoint next = start;
  const auto arrive = [&] {
    for (; next <= std::min(s.clock.Now(), end); next += kInterval) {
      Call& call = calls.emplace_back(std::vector<int64_t>{1});
      const TimePoint left_caller = next - kOnTheWay / 2;
      call.on_answer = [&, left_caller] {
        const bool in_time = s.clock.Now() + kOnTheWay / 2 <= left_caller + kPatience;
        useful += call.status.ok() && in_time;
      };
      s.scheduler->Submit(call.MakeRequest(next + kPatience));
    }
  };
  s.executor->on_run = [&](absl::Span<const Bound* const> batch) {
    for (const Bound* one : batch) {
      s.clock.Advance(kRow * one->binding.rows);
      arrive();
    }
  };
  arrive();
  while (s.clock.Now() < end) ASSERT_TRUE(s.scheduler->Step());
  const int64_t could = (s.clock.Now() - start) / kRow;
  EXPECT_GE(useful, could * 95 / 100) << "of " << could;
  s.Drain();
  for (const Call& call : calls) EXPECT_EQ(call.answers.load(), 1);
}

}  // namespace
}  // namespace floe::server
