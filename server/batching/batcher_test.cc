#include "server/batching/batcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "base/retry_after.h"
#include "server/batching/batcher_for_test.h"

namespace floe::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;

TEST(Batcher, RowsGoBackToTheirOwners) {
  Stepped s;
  Call a({1, 2}), b({3}), c({4, 5, 6}), other({7}, 1);
  for (Call* call : {&a, &b, &other, &c}) s.batcher->Submit(call->Request());
  EXPECT_EQ(a.answers, 0);
  s.Drain();
  for (Call* call : {&a, &b, &c, &other}) call->ExpectDoubled();
  EXPECT_THAT(s.batches, ElementsAre(ElementsAre(1, 3, 4), ElementsAre(7)));
}

TEST(Batcher, EachWorkerHasRunBeforeTheFirstRequest) {
  Mutex mutex;
  std::map<int, std::thread::id> ran;  // by slot
  Batcher batcher(std::make_unique<Doubler>(4),
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

TEST(Batcher, SlotsThatStayIdleAreTrimmedOnce) {
  Stepped s({}, 2);
  s.batcher->TrimIdle(s.clock.Now() + std::chrono::hours(1));
  EXPECT_THAT(s.runner->trimmed, ElementsAre());  // none was used
  Call a({1}), b({2});
  s.batcher->Submit(a.Request());
  s.Drain();
  s.batcher->TrimIdle(s.clock.Now() + seconds(59));
  EXPECT_THAT(s.runner->trimmed, ElementsAre());
  s.batcher->TrimIdle(s.clock.Now() + seconds(60));
  s.batcher->TrimIdle(s.clock.Now() + seconds(120));
  EXPECT_THAT(s.runner->trimmed, ElementsAre(0));
  s.batcher->Submit(b.Request());
  s.Drain();
  b.ExpectDoubled();
  s.batcher->TrimIdle(s.clock.Now() + seconds(60));
  EXPECT_THAT(s.runner->trimmed, ElementsAre(0, 1));  // the slot with memory goes first
}

TEST(Batcher, WhatAdmitRefusesNeverQueues) {
  Stepped s;
  Call call({1});
  auto request = call.Request();
  request->inputs[0].shape = Shape({1, 1});
  s.batcher->Submit(std::move(request));
  call.ExpectCode(absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(s.batcher->Step());
}

TEST(Batcher, AFailedBatchRunsOneByOne) {
  Stepped s;
  Call good({1, 2}), bad({-1}), also_good({3});
  for (Call* call : {&good, &bad, &also_good}) s.batcher->Submit(call->Request());
  s.Drain();
  good.ExpectDoubled();
  also_good.ExpectDoubled();
  bad.ExpectCode(absl::StatusCode::kOutOfRange);
  EXPECT_THAT(s.batches,
              ElementsAre(ElementsAre(1, -1, 3), ElementsAre(1), ElementsAre(-1), ElementsAre(3)));
}

TEST(Batcher, DeadlinesInTheQueue) {
  Stepped s;
  Call late({1}), fine({2}), hopeless({3});
  s.batcher->Submit(hopeless.Request(s.clock.Now()));
  hopeless.ExpectCode(absl::StatusCode::kDeadlineExceeded);
  s.batcher->Submit(late.Request(s.clock.Now() + milliseconds(5)));
  s.batcher->Submit(fine.Request(s.clock.Now() + milliseconds(50)));
  s.clock.Advance(milliseconds(5));
  s.Drain();
  late.ExpectCode(absl::StatusCode::kDeadlineExceeded);
  fine.ExpectDoubled();
  EXPECT_THAT(s.batches, ElementsAre(ElementsAre(2)));
}

// Of most requests: this machine may keep any one thread waiting for longer.
TEST(Batcher, RequestsBehindARunThatDoesNotEndExpireWithinTenMilliseconds) {
  Call running({0});
  std::vector<std::unique_ptr<Call>> calls;
  std::vector<Duration> late(25);
  absl::Notification entered, released;
  absl::BlockingCounter answered(static_cast<int>(late.size()));
  auto runner = std::make_unique<Doubler>();
  runner->on_run = [&](absl::Span<const Slice>) {
    entered.Notify();
    released.WaitForNotification();
  };
  Batcher batcher(std::move(runner), Batcher::Options{.threads = 1, .name = "m"});
  batcher.Submit(running.Request());
  entered.WaitForNotification();
  const TimePoint last = Clock::Steady().Now() + milliseconds(200);
  for (size_t i = 0; i < late.size(); ++i) {  // each earlier than all before it
    const TimePoint deadline = last - i * milliseconds(4);
    calls.push_back(std::make_unique<Call>(std::vector<int64_t>{1}));
    calls[i]->on_answer = [&late, &answered, i, deadline] {
      late[i] = Clock::Steady().Now() - deadline;
      answered.DecrementCount();
    };
    batcher.Submit(calls[i]->Request(deadline));
  }
  answered.Wait();
  released.Notify();
  batcher.Stop();
  for (const auto& call : calls) call->ExpectCode(absl::StatusCode::kDeadlineExceeded);
  std::sort(late.begin(), late.end());
  EXPECT_GE(late.front(), Duration::zero());
  EXPECT_LT(late[late.size() / 2], milliseconds(10));
}

TEST(Batcher, CancellationTakesARequestOut) {
  Stepped s;
  Call before({1}), queued({2}), stays({3}), after({4});
  before.cancel->Cancel();
  s.batcher->Submit(before.Request());
  before.ExpectCode(absl::StatusCode::kCancelled);
  s.batcher->Submit(queued.Request());
  s.batcher->Submit(stays.Request());
  s.batcher->Submit(after.Request());
  // The answer must not come on the cancelling thread, where the token's lock is held.
  queued.on_answer = [&queued] { queued.cancel->ClearListener(); };
  queued.cancel->Cancel();
  EXPECT_EQ(queued.answers, 0);
  EXPECT_EQ(s.batcher->Progress().queued, 2u);
  s.Drain();
  queued.ExpectCode(absl::StatusCode::kCancelled);
  stays.ExpectDoubled();
  after.ExpectDoubled();
  after.cancel->Cancel();  // too late to matter
  EXPECT_THAT(s.batches, ElementsAre(ElementsAre(3, 4)));
}

TEST(Batcher, FullQueueRefuses) {
  Stepped s({.max_rows = 1, .max_queued_rows = 2});
  Call a({1}), b({2}), c({3});
  for (Call* call : {&a, &b, &c}) s.batcher->Submit(call->Request());
  c.ExpectCode(absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(c.status.message()), HasSubstr("'m' is full (2 requests"));
  EXPECT_EQ(RetryAfter(c.status), milliseconds(1)) << "what a run takes is not known yet";
  s.Drain();
  a.ExpectDoubled();
  b.ExpectDoubled();
}

TEST(Batcher, FullQueueRefusesAsTold) {
  Call a({1}), b({2});  // they outlive the batcher, which answers what still waits
  Batcher batcher(std::make_unique<Doubler>(),
                  {.limits = {.max_queued_rows = 1},
                   .threads = 0,
                   .full_status = absl::StatusCode::kResourceExhausted});
  batcher.Submit(a.Request());
  batcher.Submit(b.Request());
  b.ExpectCode(absl::StatusCode::kResourceExhausted);
}

TEST(Batcher, StopAnswersEverythingOnce) {
  Stepped s;
  Call queued({1}), refused({2});
  s.batcher->Submit(queued.Request());
  s.batcher->Stop();
  queued.ExpectCode(absl::StatusCode::kUnavailable);
  s.batcher->Submit(refused.Request());
  refused.ExpectCode(absl::StatusCode::kUnavailable);
  s.batcher->Stop();
}

TEST(Batcher, CheapRequestsRunOnTheCallersThreadWhenNobodyWaits) {
  Stepped s;
  s.runner->cheap = true;
  Call inline_call({1});
  s.batcher->Submit(inline_call.Request());
  inline_call.ExpectDoubled();
  EXPECT_EQ(inline_call.answered_by, std::this_thread::get_id());

  s.runner->cheap = false;
  Call queued({2}), behind({3});
  s.batcher->Submit(queued.Request());
  s.runner->cheap = true;
  s.batcher->Submit(behind.Request());  // must not overtake
  EXPECT_EQ(behind.answers, 0);
  s.Drain();
  queued.ExpectDoubled();
  behind.ExpectDoubled();

  // While the only slot is taken (here: from within its run's answer) a cheap request queues.
  Call outer({4}), nested({5});
  outer.on_answer = [&] { s.batcher->Submit(nested.Request()); };
  s.batcher->Submit(outer.Request());
  EXPECT_EQ(nested.answers, 0);
  s.Drain();
  nested.ExpectDoubled();
}

// What no reply can hold is not computed to the end, nor given memory.
TEST(Batcher, ALargeRequestsOutputsAreBounded) {
  Stepped s({.max_rows = 4});
  Call call({1, 2, 3, 4});
  auto request = call.Request();
  request->inputs[0].shape = Shape({int64_t{1} << 29});  // of which only the first run is computed
  s.batcher->Submit(std::move(request));
  s.Drain();
  call.ExpectCode(absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(call.status.message()), testing::HasSubstr("fewer rows"));
  EXPECT_EQ(s.batches.size(), 1u);
}

TEST(Batcher, ProgressShowsWorkThatDoesNotMove) {
  Stepped s;
  EXPECT_FALSE(IsStuck(s.batcher->Progress(), s.clock.Now()));
  Call a({1});
  s.batcher->Submit(a.Request());
  s.clock.Advance(seconds(10));
  EXPECT_FALSE(IsStuck(s.batcher->Progress(), s.clock.Now()));
  s.clock.Advance(seconds(1));
  EXPECT_TRUE(IsStuck(s.batcher->Progress(), s.clock.Now()));
  s.runner->on_run = [&s](absl::Span<const Slice>) {
    EXPECT_EQ(s.batcher->Progress().runs.size(), 1u);
    s.clock.Advance(seconds(3));
  };
  s.Drain();
  EXPECT_FALSE(IsStuck(s.batcher->Progress(), s.clock.Now())) << "nothing waits";
  EXPECT_EQ(s.batcher->Progress().slowest, Duration(seconds(3)));
  Call b({1});
  s.batcher->Submit(b.Request());
  s.clock.Advance(seconds(60));
  EXPECT_FALSE(IsStuck(s.batcher->Progress(), s.clock.Now())) << "20 x the slowest run, 3 s";
  s.clock.Advance(seconds(1));
  EXPECT_TRUE(IsStuck(s.batcher->Progress(), s.clock.Now()));
  s.Drain();
}

TEST(Batcher, TheSlowestRunFades) {
  Stepped s;
  Duration takes = seconds(100);
  s.runner->on_run = [&](absl::Span<const Slice>) { s.clock.Advance(takes); };
  const auto run = [&s] {
    Call call({1});
    s.batcher->Submit(call.Request());
    s.Drain();
    return s.batcher->Progress().slowest;
  };
  EXPECT_EQ(run(), Duration(seconds(100)));
  takes = seconds(1);
  EXPECT_EQ(run(), Duration(seconds(100)));
  s.clock.Advance(std::chrono::minutes(10));
  EXPECT_EQ(s.batcher->Progress().slowest, Duration(seconds(50)));
  EXPECT_EQ(run(), Duration(seconds(50)));
  s.clock.Advance(std::chrono::hours(2));
  EXPECT_EQ(run(), Duration(seconds(1)));
}

TEST(Batcher, HowLongAFailedRunTookSaysNothing) {
  Stepped s;
  s.runner->on_run = [&s](absl::Span<const Slice>) { s.clock.Advance(std::chrono::hours(1)); };
  Call bad({-1});
  s.batcher->Submit(bad.Request());
  s.Drain();
  bad.ExpectCode(absl::StatusCode::kOutOfRange);
  EXPECT_EQ(s.batcher->Progress().slowest, Duration::zero());
}

TEST(Batcher, ARequestThatWaitsForAFullerBatchIsNotStuck) {
  Stepped s({.max_rows = 4, .timeout = seconds(60)});
  Call a({1});
  s.batcher->Submit(a.Request());
  s.clock.Advance(seconds(70));
  EXPECT_FALSE(IsStuck(s.batcher->Progress(), s.clock.Now()));
  s.clock.Advance(seconds(1));
  EXPECT_TRUE(IsStuck(s.batcher->Progress(), s.clock.Now()));
  s.Drain();
}

TEST(Batcher, ADeadlineEndsTheWaitForAFullerBatch) {
  Stepped s({.max_rows = 4, .timeout = seconds(20)});
  Call a({1});
  s.batcher->Submit(a.Request(s.clock.Now() + milliseconds(500)));
  EXPECT_FALSE(s.batcher->Step());
  s.clock.Advance(milliseconds(375));
  EXPECT_TRUE(s.batcher->Step());
  a.ExpectDoubled();
}

TEST(Batcher, AStuckRunIsNamedOnce) {
  Stepped s({}, 2);
  s.runner->on_run = [&s](absl::Span<const Slice>) {
    EXPECT_TRUE(s.batcher->NewlyStuck(s.clock.Now()).empty());
    s.clock.Advance(seconds(11));
    EXPECT_EQ(s.batcher->NewlyStuck(s.clock.Now()).size(), 1u);
    EXPECT_TRUE(s.batcher->NewlyStuck(s.clock.Now()).empty());
  };
  Call a({1});
  s.batcher->Submit(a.Request());
  s.Drain();
  EXPECT_EQ(s.batcher->Stats().stuck_runs, 1u);
}

TEST(Batcher, ALargeRequestMayTakeAsManyTimesLonger) {
  Stepped s({.max_rows = 2});
  s.runner->splittable = false;
  bool stuck_at_60 = true, stuck_at_601 = false;
  s.runner->on_run = [&](absl::Span<const Slice> batch) {
    if (batch[0].rows <= 2) return s.clock.Advance(seconds(3));
    s.clock.Advance(seconds(60));
    stuck_at_60 = IsStuck(s.batcher->Progress(), s.clock.Now());
    s.clock.Advance(seconds(541));
    stuck_at_601 = IsStuck(s.batcher->Progress(), s.clock.Now());
  };
  Call small({1, 2}), large(std::vector<int64_t>(20, 1));
  s.batcher->Submit(small.Request());
  s.Drain();
  s.batcher->Submit(large.Request());
  s.Drain();
  EXPECT_FALSE(stuck_at_60);
  EXPECT_TRUE(stuck_at_601) << "20 x 3 s x 10 batches";
  EXPECT_EQ(s.batcher->Progress().slowest, Duration(std::chrono::milliseconds(60100)))
      << "of as many rows as a batch has";
}

TEST(Batcher, ALargeRequestRunsInPartsAndComesBackWhole) {
  Stepped s({.max_rows = 4});
  Call before({1, 2, 3}), large({10, 11, 12, 13, 14, 15, 16}), after({20, 21});
  for (Call* call : {&before, &large, &after}) s.batcher->Submit(call->Request());
  s.Drain();
  for (Call* call : {&before, &large, &after}) call->ExpectDoubled();
  EXPECT_THAT(s.batches, ElementsAre(ElementsAre(1, 10), ElementsAre(20, 11), ElementsAre(13)));
  EXPECT_EQ(s.batcher->Stats().batches.rows, 12u);
}

// A large request's outputs are held from its first part to its last: those of one at a time.
TEST(Batcher, LargeRequestsAreComputedOneAfterTheOther) {
  Stepped s({.max_rows = 4});
  Call first({10, 11, 12, 13, 14, 15, 16, 17, 18}), second({20, 21, 22, 23, 24, 25}),
      third({30, 31, 32, 33, 34}, 1), small({1, 2, 3, 4}, 2);
  const std::vector<Call*> large = {&first, &second, &third};
  for (Call* call : large) s.batcher->Submit(call->Request());
  s.runner->on_run = [&, record = s.runner->on_run](absl::Span<const Slice> batch) {
    record(batch);
    int begun = 0;
    for (Call* call : large)
      for (const auto& firsts : s.batches)
        begun += call->answers == 0 && firsts[0] == call->values[0];
    EXPECT_LE(begun, 1);
  };
  EXPECT_TRUE(s.batcher->Step());
  s.batcher->Submit(small.Request());
  s.Drain();
  for (Call* call : {&first, &second, &third, &small}) call->ExpectDoubled();
  EXPECT_THAT(s.batches,
              ElementsAre(ElementsAre(10), ElementsAre(14), ElementsAre(1), ElementsAre(18),
                          ElementsAre(20), ElementsAre(24), ElementsAre(30), ElementsAre(34)));
}

TEST(Batcher, APartThatFailsEndsItsRequestAndNoOther) {
  Stepped s({.max_rows = 4});
  Call good({1, 2, 3}), bad({10, 11, 12, -1, 14, 15, 16, 17, 18}), after({20});
  for (Call* call : {&good, &bad, &after}) s.batcher->Submit(call->Request());
  s.Drain();
  good.ExpectDoubled();
  after.ExpectDoubled();
  bad.ExpectCode(absl::StatusCode::kOutOfRange);
  EXPECT_THAT(s.batches, ElementsAre(ElementsAre(1, 10), ElementsAre(20, 11), ElementsAre(20),
                                     ElementsAre(11)))
      << "what is left of it is not computed";
}

TEST(Batcher, ALargeRequestLeavesBetweenItsParts) {
  Stepped s({.max_rows = 2});
  Call left({1, 2, 3, 4, 5, 6}), late({7, 8, 9, 10, 11});
  s.batcher->Submit(left.Request());
  s.batcher->Submit(late.Request(s.clock.Now() + milliseconds(5)));
  EXPECT_TRUE(s.batcher->Step());
  left.cancel->Cancel();
  EXPECT_TRUE(s.batcher->Step());
  left.ExpectCode(absl::StatusCode::kCancelled);
  s.clock.Advance(milliseconds(5));
  s.Drain();
  late.ExpectCode(absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(s.batches, ElementsAre(ElementsAre(1), ElementsAre(7)));

  // The same while a part runs: the run's end answers.
  Call during({1, 2, 3, 4});
  s.runner->on_run = [&during](absl::Span<const Slice>) { during.cancel->Cancel(); };
  s.batcher->Submit(during.Request());
  EXPECT_TRUE(s.batcher->Step());
  during.ExpectCode(absl::StatusCode::kCancelled);
  EXPECT_FALSE(s.batcher->Step());
}

TEST(Batcher, ARunIsGivenUpWhenNobodyWaitsForIt) {
  Stepped s;
  Call a({1}), b({2}), alone({3});
  const TimePoint soon = s.clock.Now() + milliseconds(5), later = s.clock.Now() + milliseconds(9);
  bool after_one = true, after_all = false;
  s.runner->on_limits = [&](const RunLimits& limits) {
    EXPECT_EQ(limits.deadline, later) << "until then somebody waits";
    EXPECT_EQ(limits.clock, &s.clock);
    a.cancel->Cancel();
    after_one = limits.cancel->cancelled();
    b.cancel->Cancel();
    after_all = limits.cancel->cancelled();
  };
  s.batcher->Submit(a.Request(soon));
  s.batcher->Submit(b.Request(later));
  s.Drain();
  EXPECT_FALSE(after_one);
  EXPECT_TRUE(after_all);
  a.ExpectCode(absl::StatusCode::kCancelled);
  b.ExpectCode(absl::StatusCode::kCancelled);
  EXPECT_EQ(s.batches.size(), 1u) << "it does not run again";
  s.runner->on_limits = [&](const RunLimits& limits) {
    EXPECT_EQ(limits.cancel, alone.cancel.get());
    EXPECT_EQ(limits.deadline, TimePoint::max());
  };
  s.batcher->Submit(alone.Request());
  s.Drain();
  alone.ExpectDoubled();
}

TEST(Batcher, ACallerWhoFailsABatchIsBatchedApartForASecond) {
  Stepped s;
  Call bad({-1}), good({1});
  const auto submit = [&s](Call& call, uint64_t caller) {
    auto request = call.Request();
    request->caller = caller;
    s.batcher->Submit(std::move(request));
  };
  submit(bad, 7);
  submit(good, 8);
  s.Drain();
  EXPECT_EQ(s.batcher->Stats().reruns, 1u);
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

TEST(Batcher, CountsWhatHappened) {
  Stepped s({.max_rows = 2, .max_queued_rows = 3});
  Call a({1}), b({2}), c({3}), full({4}), left({5}), late({6}), bad({-1});
  for (Call* call : {&a, &b, &c, &full}) s.batcher->Submit(call->Request());
  s.Drain();
  s.batcher->Submit(left.Request());
  s.batcher->Submit(late.Request(s.clock.Now() + milliseconds(1)));
  s.batcher->Submit(bad.Request());
  left.cancel->Cancel();
  s.clock.Advance(milliseconds(1));
  s.Drain();
  const BatcherStats stats = s.batcher->Stats();
  EXPECT_EQ(stats.answered, 3u);
  EXPECT_EQ(stats.refused_full, 1u);
  EXPECT_EQ(stats.cancelled, 1u);
  EXPECT_EQ(stats.expired, 1u);
  EXPECT_EQ(stats.failed, 1u);
  EXPECT_EQ(stats.batches.batches, 3u);
  EXPECT_EQ(stats.batches.requests, 4u);
  EXPECT_EQ(stats.batches.closed[static_cast<int>(BatchClose::kFull)], 1u);
  EXPECT_EQ(stats.batches.closed[static_cast<int>(BatchClose::kIdle)], 2u);
  EXPECT_EQ(stats.batches.rows, 4u);
  ASSERT_EQ(stats.kinds.size(), 1u);
  EXPECT_EQ(stats.kinds[0].first, "twice");
  EXPECT_EQ(stats.kinds[0].second.rows, 4u);
}

// Memory that runs out for one reply, or in one run, is that request's error and nobody else's.
TEST(Batcher, MemoryThatRunsOutEndsOneRequest) {
  Stepped s({.max_rows = 2});
  Call large({1}), small({2}), greedy({3});
  auto request = large.Request();
  request->done = [&, done = request->done](const absl::Status& status,
                                            absl::Span<const TensorView> outputs) {
    if (status.ok()) throw std::bad_alloc();
    done(status, outputs);
  };
  s.batcher->Submit(std::move(request));
  s.batcher->Submit(small.Request());
  s.Drain();
  large.ExpectCode(absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(large.sends, 1);
  small.ExpectDoubled();
  EXPECT_EQ(s.batcher->Stats().answered, 1u);
  EXPECT_EQ(s.batcher->Stats().failed, 1u);

  s.runner->on_run = [](absl::Span<const Slice>) { throw std::length_error("too long"); };
  s.batcher->Submit(greedy.Request());
  s.Drain();
  greedy.ExpectCode(absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace floe::server
