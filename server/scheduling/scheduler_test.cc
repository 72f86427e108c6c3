#include "server/scheduling/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "base/retry_after.h"
#include "server/scheduling/scheduler_for_test.h"

namespace floe::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

TEST(Scheduler, RowsGoBackToTheirOwners) {
  Stepped s;
  Call a({1, 2}), b({3}), c({4, 5, 6}), other({7}, 1);
  for (Call* call : {&a, &b, &other, &c}) s.scheduler->Submit(call->MakeRequest());
  EXPECT_EQ(a.answers, 0);
  s.Drain();
  for (Call* call : {&a, &b, &c, &other}) call->ExpectDoubled();
  EXPECT_THAT(s.batches, ElementsAre(ElementsAre(1, 3, 4), ElementsAre(7)));
}

TEST(Scheduler, EachWorkerHasRunBeforeTheFirstRequest) {
  Mutex mutex;
  std::map<int, std::thread::id> ran;  // by slot
  Scheduler scheduler(std::make_unique<Doubler>(4),
                      {.threads = 3, .name = "m", .first_run = [&](int s) {
                         MutexLock lock(mutex);
                         ran[s] = std::this_thread::get_id();
                       }});
  MutexLock lock(mutex);
  std::set<std::thread::id> threads = {std::this_thread::get_id()};
  for (const auto& [slot, thread] : ran) threads.insert(thread);
  EXPECT_THAT(ran, ElementsAre(Key(0), Key(1), Key(2)));
  EXPECT_EQ(threads.size(), 4u);
}

TEST(Scheduler, SlotsThatStayIdleAreTrimmedOnce) {
  Stepped s({}, 2);
  const auto trimmed = [&](Duration after) {
    s.scheduler->TrimIdle(s.clock.Now() + after);
    return std::exchange(s.executor->trimmed, {});
  };
  EXPECT_THAT(trimmed(seconds(0)), ElementsAre());
  // The warm-up has used both, and nobody else.
  EXPECT_THAT(trimmed(seconds(1)), UnorderedElementsAre(0, 1));
  EXPECT_THAT(trimmed(std::chrono::hours(1)), ElementsAre());
  Call a({1}), b({2});
  s.scheduler->Submit(a.MakeRequest());
  s.Drain();
  EXPECT_THAT(trimmed(seconds(59)), ElementsAre());
  const std::vector<int> first = trimmed(seconds(60));
  EXPECT_EQ(first.size(), 1u);
  EXPECT_THAT(trimmed(seconds(120)), ElementsAre());
  s.scheduler->Submit(b.MakeRequest());
  s.Drain();
  b.ExpectDoubled();
  EXPECT_THAT(trimmed(seconds(60)), SizeIs(1));
}

TEST(Scheduler, WhatBindRefusesNeverQueues) {
  Stepped s;
  Call call({1});
  s.scheduler->Submit(call.MakeRequest(Shape({1, 1})));
  call.ExpectCode(absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(s.scheduler->Step());
}

TEST(Scheduler, AFailedBatchIsHalvedUntilWhoFailsIsAlone) {
  Stepped s;
  Call a({1, 2}), b({3}), bad({-1}), c({4}), d({5});
  for (Call* call : {&a, &b, &bad, &c, &d}) s.scheduler->Submit(call->MakeRequest());
  s.Drain();
  for (Call* call : {&a, &b, &c, &d}) call->ExpectDoubled();
  bad.ExpectCode(absl::StatusCode::kOutOfRange);
  EXPECT_THAT(s.batches, ElementsAre(ElementsAre(1, 3, -1, 4, 5), ElementsAre(1, 3),
                                     ElementsAre(-1, 4, 5), ElementsAre(-1), ElementsAre(4, 5)));
}

// Who leaves while one half runs keeps nobody of the other half from an answer.
TEST(Scheduler, AHalfThatNobodyWaitsForEndsAlone) {
  Stepped s;
  Call a({1}), b({2}), bad({-1}), c({3});
  int run = 0;
  s.executor->on_run = [&](absl::Span<const Bound* const>) {
    if (++run != 2) return;
    a.cancel->Cancel();
    b.cancel->Cancel();
  };
  for (Call* call : {&a, &b, &bad, &c}) s.scheduler->Submit(call->MakeRequest());
  s.Drain();
  a.ExpectCode(absl::StatusCode::kCancelled);
  b.ExpectCode(absl::StatusCode::kCancelled);
  bad.ExpectCode(absl::StatusCode::kOutOfRange);
  c.ExpectDoubled();
}

TEST(Scheduler, SaysWhereTheTimeWent) {
  Stepped s;
  s.executor->on_run = [&s](absl::Span<const Bound* const>) { s.clock.Advance(milliseconds(7)); };
  Call a({1, 2}), b({3});
  s.scheduler->Submit(a.MakeRequest());
  s.clock.Advance(milliseconds(3));
  s.scheduler->Submit(b.MakeRequest());
  s.Drain();
  EXPECT_EQ(a.timings.queue, milliseconds(3));
  EXPECT_EQ(b.timings.queue, Duration::zero());
  EXPECT_EQ(b.timings.run, milliseconds(7));
  EXPECT_EQ(b.timings.batch_rows, 3);
}

TEST(Scheduler, DeadlinesInTheQueue) {
  Stepped s;
  Call late({1}), fine({2}), hopeless({3});
  s.scheduler->Submit(hopeless.MakeRequest(s.clock.Now()));
  hopeless.ExpectCode(absl::StatusCode::kDeadlineExceeded);
  s.scheduler->Submit(late.MakeRequest(s.clock.Now() + milliseconds(5)));
  s.scheduler->Submit(fine.MakeRequest(s.clock.Now() + milliseconds(50)));
  s.clock.Advance(milliseconds(5));
  s.Drain();
  late.ExpectCode(absl::StatusCode::kDeadlineExceeded);
  fine.ExpectDoubled();
  EXPECT_THAT(s.batches, ElementsAre(ElementsAre(2)));
}

// How late most requests are answered whose deadlines pass during a run that does not end.
Duration MedianLateness() {
  Call running({0});
  std::vector<std::unique_ptr<Call>> calls;
  std::vector<Duration> late(25);
  absl::Notification entered, released;
  absl::BlockingCounter answered(static_cast<int>(late.size()));
  auto executor = std::make_unique<Doubler>();
  executor->on_run = [&](absl::Span<const Bound* const>) {
    entered.Notify();
    released.WaitForNotification();
  };
  Scheduler scheduler(std::move(executor), Scheduler::Options{.threads = 1, .name = "m"});
  scheduler.Submit(running.MakeRequest());
  entered.WaitForNotification();
  const TimePoint last = Clock::Steady().Now() + milliseconds(200);
  for (size_t i = 0; i < late.size(); ++i) {  // each earlier than all before it
    const TimePoint deadline = last - i * milliseconds(4);
    calls.push_back(std::make_unique<Call>(std::vector<int64_t>{1}));
    calls[i]->on_answer = [&late, &answered, i, deadline] {
      late[i] = Clock::Steady().Now() - deadline;
      answered.DecrementCount();
    };
    scheduler.Submit(calls[i]->MakeRequest(deadline));
  }
  answered.Wait();
  released.Notify();
  scheduler.Stop();
  for (const auto& call : calls) call->ExpectCode(absl::StatusCode::kDeadlineExceeded);
  std::sort(late.begin(), late.end());
  EXPECT_GE(late.front(), Duration::zero());
  return late[late.size() / 2];
}

// A busy machine may keep all threads waiting for longer, but hardly each time.
TEST(Scheduler, RequestsBehindARunThatDoesNotEndExpireWithinTenMilliseconds) {
  Duration least = Duration::max();
  for (int attempt = 0; attempt < 10 && least >= milliseconds(10); ++attempt)
    least = std::min(least, MedianLateness());
  EXPECT_LT(least, milliseconds(10));
}

TEST(Scheduler, CancellationTakesARequestOut) {
  Stepped s;
  Call before({1}), queued({2}), stays({3}), after({4});
  before.cancel->Cancel();
  s.scheduler->Submit(before.MakeRequest());
  before.ExpectCode(absl::StatusCode::kCancelled);
  s.scheduler->Submit(queued.MakeRequest());
  s.scheduler->Submit(stays.MakeRequest());
  s.scheduler->Submit(after.MakeRequest());
  // The answer must not come on the cancelling thread, where the token's lock is held.
  queued.on_answer = [&queued] { queued.cancel->ClearListener(&queued); };
  queued.cancel->Cancel();
  EXPECT_EQ(queued.answers, 0);
  EXPECT_EQ(s.scheduler->Progress().queued, 2u);
  s.Drain();
  queued.ExpectCode(absl::StatusCode::kCancelled);
  stays.ExpectDoubled();
  after.ExpectDoubled();
  after.cancel->Cancel();  // too late to matter
  EXPECT_THAT(s.batches, ElementsAre(ElementsAre(3, 4)));
}

TEST(Scheduler, FullQueueRefuses) {
  Stepped s({.max_rows = 1, .max_queued_rows = 2});
  Call a({1}), b({2}), c({3});
  for (Call* call : {&a, &b, &c}) s.scheduler->Submit(call->MakeRequest());
  c.ExpectCode(absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(c.status.message()), HasSubstr("'m' is full (2 requests"));
  EXPECT_EQ(RetryAfter(c.status), milliseconds(1)) << "what a run takes is not known yet";
  s.Drain();
  a.ExpectDoubled();
  b.ExpectDoubled();
}

TEST(Scheduler, FullQueueRefusesAsTold) {
  Call a({1}), b({2});  // they outlive the scheduler, which answers what still waits
  Scheduler scheduler(std::make_unique<Doubler>(),
                      {.limits = {.max_queued_rows = 1},
                       .threads = 0,
                       .full_status = absl::StatusCode::kResourceExhausted});
  scheduler.Submit(a.MakeRequest());
  scheduler.Submit(b.MakeRequest());
  b.ExpectCode(absl::StatusCode::kResourceExhausted);
}

TEST(Scheduler, StopAnswersEverythingOnce) {
  Stepped s;
  Call queued({1}), refused({2});
  s.scheduler->Submit(queued.MakeRequest());
  s.scheduler->Stop();
  queued.ExpectCode(absl::StatusCode::kUnavailable);
  s.scheduler->Submit(refused.MakeRequest());
  refused.ExpectCode(absl::StatusCode::kUnavailable);
  s.scheduler->Stop();
}

TEST(Scheduler, QuickRequestsRunOnTheCallersThreadWhenNobodyWaits) {
  Stepped s;
  s.executor->quick = true;
  Call inline_call({1});
  s.scheduler->Submit(inline_call.MakeRequest());
  inline_call.ExpectDoubled();
  EXPECT_EQ(inline_call.answered_by, std::this_thread::get_id());

  s.executor->quick = false;
  Call queued({2}), behind({3});
  s.scheduler->Submit(queued.MakeRequest());
  s.executor->quick = true;
  s.scheduler->Submit(behind.MakeRequest());  // must not overtake
  EXPECT_EQ(behind.answers, 0);
  s.Drain();
  queued.ExpectDoubled();
  behind.ExpectDoubled();

  // While the only slot is taken (here: from within its run's answer) a quick request queues.
  Call outer({4}), nested({5});
  outer.on_answer = [&] { s.scheduler->Submit(nested.MakeRequest()); };
  s.scheduler->Submit(outer.MakeRequest());
  EXPECT_EQ(nested.answers, 0);
  s.Drain();
  nested.ExpectDoubled();
}

// While something runs a quick request queues, where batches gain much.
TEST(Scheduler, QuickRequestsThatGainByBatchesRunOnTheCallersThreadAtLowLoadOnly) {
  Stepped s({}, 2);
  s.executor->quick = true;
  s.executor->batch_gain = 3;
  Call outer({1}), nested({2}), alone({3});
  outer.on_answer = [&] { s.scheduler->Submit(nested.MakeRequest()); };  // its slot is taken yet
  s.scheduler->Submit(outer.MakeRequest());
  EXPECT_EQ(nested.answers, 0);
  s.Drain();
  nested.ExpectDoubled();
  s.scheduler->Submit(alone.MakeRequest());
  alone.ExpectDoubled();

  s.executor->batch_gain = 1.1;
  Call again({4}), beside({5});
  again.on_answer = [&] { s.scheduler->Submit(beside.MakeRequest()); };
  s.scheduler->Submit(again.MakeRequest());
  beside.ExpectDoubled();
}

TEST(Scheduler, ProgressShowsWorkThatDoesNotMove) {
  Stepped s;
  EXPECT_FALSE(IsStuck(s.scheduler->Progress(), s.clock.Now()));
  Call a({1});
  s.scheduler->Submit(a.MakeRequest());
  s.clock.Advance(seconds(10));
  EXPECT_FALSE(IsStuck(s.scheduler->Progress(), s.clock.Now()));
  s.clock.Advance(seconds(1));
  EXPECT_TRUE(IsStuck(s.scheduler->Progress(), s.clock.Now()));
  s.executor->on_run = [&s](absl::Span<const Bound* const>) {
    EXPECT_EQ(s.scheduler->Progress().runs.size(), 1u);
    s.clock.Advance(seconds(3));
  };
  s.Drain();
  EXPECT_FALSE(IsStuck(s.scheduler->Progress(), s.clock.Now())) << "nothing waits";
  EXPECT_EQ(s.scheduler->Progress().slowest, Duration(seconds(3)));
  Call b({1});
  s.scheduler->Submit(b.MakeRequest());
  s.clock.Advance(seconds(60));
  EXPECT_FALSE(IsStuck(s.scheduler->Progress(), s.clock.Now())) << "20 x the slowest run, 3 s";
  s.clock.Advance(seconds(1));
  EXPECT_TRUE(IsStuck(s.scheduler->Progress(), s.clock.Now()));
  s.Drain();
}

TEST(Scheduler, TheSlowestRunFades) {
  Stepped s;
  Duration takes = seconds(100);
  s.executor->on_run = [&](absl::Span<const Bound* const>) { s.clock.Advance(takes); };
  const auto run = [&s] {
    Call call({1});
    s.scheduler->Submit(call.MakeRequest());
    s.Drain();
    return s.scheduler->Progress().slowest;
  };
  EXPECT_EQ(run(), Duration(seconds(100)));
  takes = seconds(1);
  EXPECT_EQ(run(), Duration(seconds(100)));
  s.clock.Advance(std::chrono::minutes(10));
  EXPECT_EQ(s.scheduler->Progress().slowest, Duration(seconds(50)));
  EXPECT_EQ(run(), Duration(seconds(50)));
  s.clock.Advance(std::chrono::hours(2));
  EXPECT_EQ(run(), Duration(seconds(1)));
}

TEST(Scheduler, HowLongAFailedRunTookSaysNothing) {
  Stepped s;
  s.executor->on_run = [&s](absl::Span<const Bound* const>) {
    s.clock.Advance(std::chrono::hours(1));
  };
  Call bad({-1});
  s.scheduler->Submit(bad.MakeRequest());
  s.Drain();
  bad.ExpectCode(absl::StatusCode::kOutOfRange);
  EXPECT_EQ(s.scheduler->Progress().slowest, Duration::zero());
}

TEST(Scheduler, ARequestThatWaitsForAFullerBatchIsNotStuck) {
  Stepped s({.max_rows = 4, .timeout = seconds(60)});
  Call a({1});
  s.scheduler->Submit(a.MakeRequest());
  s.clock.Advance(seconds(70));
  EXPECT_FALSE(IsStuck(s.scheduler->Progress(), s.clock.Now()));
  s.clock.Advance(seconds(1));
  EXPECT_TRUE(IsStuck(s.scheduler->Progress(), s.clock.Now()));
  s.Drain();
}

TEST(Scheduler, ADeadlineEndsTheWaitForAFullerBatch) {
  Stepped s({.max_rows = 4, .timeout = seconds(20)});
  Call a({1});
  s.scheduler->Submit(a.MakeRequest(s.clock.Now() + milliseconds(500)));
  EXPECT_FALSE(s.scheduler->Step());
  s.clock.Advance(milliseconds(375));
  EXPECT_TRUE(s.scheduler->Step());
  a.ExpectDoubled();
}

TEST(Scheduler, AStuckRunIsNamedOnce) {
  Stepped s({}, 2);
  s.executor->on_run = [&s](absl::Span<const Bound* const>) {
    EXPECT_TRUE(s.scheduler->NewlyStuck(s.clock.Now()).empty());
    s.clock.Advance(seconds(11));
    EXPECT_EQ(s.scheduler->NewlyStuck(s.clock.Now()).size(), 1u);
    EXPECT_TRUE(s.scheduler->NewlyStuck(s.clock.Now()).empty());
  };
  Call a({1});
  s.scheduler->Submit(a.MakeRequest());
  s.Drain();
  EXPECT_EQ(s.scheduler->Stats().stuck_runs, 1u);
}

TEST(Scheduler, ALargeRequestMayTakeAsManyTimesLonger) {
  Stepped s({.max_rows = 2});
  s.executor->splittable = false;
  bool stuck_at_60 = true, stuck_at_601 = false;
  s.executor->on_run = [&](absl::Span<const Bound* const> batch) {
    if (batch[0]->binding.rows <= 2) return s.clock.Advance(seconds(3));
    s.clock.Advance(seconds(60));
    stuck_at_60 = IsStuck(s.scheduler->Progress(), s.clock.Now());
    s.clock.Advance(seconds(541));
    stuck_at_601 = IsStuck(s.scheduler->Progress(), s.clock.Now());
  };
  Call small({1, 2}), large(std::vector<int64_t>(20, 1));
  s.scheduler->Submit(small.MakeRequest());
  s.Drain();
  s.scheduler->Submit(large.MakeRequest());
  s.Drain();
  EXPECT_FALSE(stuck_at_60);
  EXPECT_TRUE(stuck_at_601) << "20 x 3 s x 10 batches";
  EXPECT_EQ(s.scheduler->Progress().slowest, Duration(std::chrono::milliseconds(60100)))
      << "of as many rows as a batch has";
}

TEST(Scheduler, ARunIsGivenUpWhenNobodyWaitsForIt) {
  Stepped s;
  Call a({1}), b({2}), alone({3});
  const TimePoint soon = s.clock.Now() + milliseconds(5), later = s.clock.Now() + milliseconds(9);
  bool after_one = true, after_all = false;
  s.executor->on_limits = [&](const RunLimits& limits) {
    EXPECT_EQ(limits.deadline, later) << "until then somebody waits";
    EXPECT_EQ(limits.clock, &s.clock);
    a.cancel->Cancel();
    after_one = limits.cancel->cancelled();
    b.cancel->Cancel();
    after_all = limits.cancel->cancelled();
  };
  s.scheduler->Submit(a.MakeRequest(soon));
  s.scheduler->Submit(b.MakeRequest(later));
  s.Drain();
  EXPECT_FALSE(after_one);
  EXPECT_TRUE(after_all);
  a.ExpectCode(absl::StatusCode::kCancelled);
  b.ExpectCode(absl::StatusCode::kCancelled);
  EXPECT_EQ(s.batches.size(), 1u) << "it does not run again";
  s.executor->on_limits = [&](const RunLimits& limits) {
    EXPECT_EQ(limits.cancel, alone.cancel.get());
    EXPECT_EQ(limits.deadline, TimePoint::max());
  };
  s.scheduler->Submit(alone.MakeRequest());
  s.Drain();
  alone.ExpectDoubled();
}

TEST(Scheduler, ACallerWhoFailsABatchIsInQuarantineForASecond) {
  Stepped s;
  Call bad({-1}), good({1});
  const auto submit = [&s](Call& call, uint64_t caller) {
    auto request = call.MakeRequest();
    request.principal = caller;
    s.scheduler->Submit(std::move(request));
  };
  submit(bad, 7);
  submit(good, 8);
  s.Drain();
  EXPECT_EQ(s.scheduler->Stats().reruns, 1u);
  good.ExpectDoubled();
  s.batches.clear();
  Call again({-2}), more({2}), other({3}), unknown({4});
  submit(again, 7);
  submit(other, 8);
  submit(more, 7);
  submit(unknown, 0);
  s.Drain();
  again.ExpectCode(absl::StatusCode::kOutOfRange);
  for (Call* call : {&more, &other, &unknown}) call->ExpectDoubled();
  EXPECT_THAT(s.batches,
              ElementsAre(ElementsAre(-2, 2), ElementsAre(-2), ElementsAre(2), ElementsAre(3, 4)));
  s.clock.Advance(seconds(1));
  s.batches.clear();
  Call forgiven({5}), with({6});
  submit(forgiven, 7);
  submit(with, 8);
  s.Drain();
  EXPECT_THAT(s.batches, ElementsAre(ElementsAre(5, 6)));
}

TEST(Scheduler, CountsWhatHappened) {
  Stepped s({.max_rows = 2, .max_queued_rows = 3});
  Call a({1}), b({2}), c({3}), full({4}), left({5}), late({6}), bad({-1});
  for (Call* call : {&a, &b, &c, &full}) s.scheduler->Submit(call->MakeRequest());
  s.Drain();
  s.scheduler->Submit(left.MakeRequest());
  s.scheduler->Submit(late.MakeRequest(s.clock.Now() + milliseconds(1)));
  s.scheduler->Submit(bad.MakeRequest());
  left.cancel->Cancel();
  s.clock.Advance(milliseconds(1));
  s.Drain();
  const SchedulerStats stats = s.scheduler->Stats();
  EXPECT_EQ(stats[Outcome::kAnswered], 3u);
  EXPECT_EQ(stats[Outcome::kRefusedFull], 1u);
  EXPECT_EQ(stats[Outcome::kCancelled], 1u);
  EXPECT_EQ(stats[Outcome::kExpired], 1u);
  EXPECT_EQ(stats[Outcome::kFailed], 1u);
  EXPECT_EQ(stats.batches.batches, 3u);
  EXPECT_EQ(stats.batches.requests, 4u);
  EXPECT_EQ(stats.batches.closed[static_cast<int>(BatchClose::kFull)], 1u);
  EXPECT_EQ(stats.batches.closed[static_cast<int>(BatchClose::kIdle)], 2u);
  EXPECT_EQ(stats.batches.rows, 4u);
  ASSERT_EQ(stats.profiles.size(), 1u);
  EXPECT_EQ(stats.profiles[0].name, "twice");
  EXPECT_EQ(stats.profiles[0].batches.rows, 4u);
  EXPECT_EQ(stats.by_code[static_cast<size_t>(absl::StatusCode::kOk)], 3u);
  EXPECT_EQ(stats.by_code[static_cast<size_t>(absl::StatusCode::kCancelled)], 1u);
  EXPECT_EQ(stats.run.count, 3u);
  EXPECT_EQ(stats.queue_wait.count, 4u);
  ASSERT_EQ(stats.work.size(), 1u);
  EXPECT_EQ(stats.work[0].queue_wait.count(), 4u);
  EXPECT_EQ(stats.work[0].run.count(), 3u);
  EXPECT_EQ(stats.work[0].batch_rows.sum(), 4);
  ASSERT_EQ(stats.requests.size(), 1u);
  EXPECT_EQ(stats.requests[0].by_code, stats.by_code);
  EXPECT_EQ(stats.requests[0].seconds.count(), 3u) << "of those that ended with OK";
}

// The time of a request begins where its call arrived, and has what writing the answer took.
TEST(Scheduler, RequestsAreTimedFromTheirArrivalToTheAnswer) {
  Stepped s({.max_rows = 2});
  Call call({1});
  Request request = call.MakeRequest();
  request.arrived = s.clock.Now() - milliseconds(3);
  request.complete = [&s, done = request.complete](const absl::StatusOr<Outputs>& outputs,
                                                   const Timings& timings) {
    s.clock.Advance(milliseconds(4));
    done(outputs, timings);
  };
  s.scheduler->Submit(std::move(request));
  s.clock.Advance(milliseconds(2));
  s.Drain();
  const SchedulerStats stats = s.scheduler->Stats();
  ASSERT_EQ(stats.requests.size(), 1u);
  EXPECT_DOUBLE_EQ(stats.requests[0].seconds.sum(), 0.009);
  EXPECT_DOUBLE_EQ(stats.work[0].queue_wait.sum(), 0.002);
}

// Memory that runs out for one reply, or in one run, is that request's error and nobody else's.
TEST(Scheduler, MemoryThatRunsOutEndsOneRequest) {
  Stepped s({.max_rows = 2});
  Call large({1}), small({2}), greedy({3});
  auto request = large.MakeRequest();
  request.complete = [&, done = request.complete](const absl::StatusOr<Outputs>& outputs,
                                                  const Timings& timings) {
    if (outputs.ok()) throw std::bad_alloc();
    done(outputs, timings);
  };
  s.scheduler->Submit(std::move(request));
  s.scheduler->Submit(small.MakeRequest());
  s.Drain();
  large.ExpectCode(absl::StatusCode::kResourceExhausted);
  small.ExpectDoubled();
  EXPECT_EQ(s.scheduler->Stats()[Outcome::kAnswered], 1u);
  EXPECT_EQ(s.scheduler->Stats()[Outcome::kFailed], 1u);

  s.executor->on_run = [](absl::Span<const Bound* const>) { throw std::length_error("too long"); };
  s.scheduler->Submit(greedy.MakeRequest());
  s.Drain();
  greedy.ExpectCode(absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace floe::server
