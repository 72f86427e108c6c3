#include "server/scheduling/join.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "server/scheduling/scheduler_for_test.h"

namespace floe::server {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;

// What no reply can hold is not computed, nor given memory.
TEST(Join, ALargeRequestsOutputsAreBounded) {
  Stepped s({.max_rows = 4});
  Call call({1, 2, 3, 4});
  s.scheduler->Submit(call.MakeRequest(Shape({int64_t{1} << 29})));
  call.ExpectCode(absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(call.status.message()), testing::HasSubstr("fewer rows"));
  EXPECT_TRUE(s.batches.empty());
}

TEST(Join, ALargeRequestRunsInPartsAndComesBackWhole) {
  Stepped s({.max_rows = 4});
  Call before({1, 2}), large({10, 11, 12, 13, 14, 15, 16, 17, 18, 19}), after({20, 21});
  for (Call* call : {&before, &large, &after}) s.scheduler->Submit(call->MakeRequest());
  s.Drain();
  for (Call* call : {&before, &large, &after}) call->ExpectDoubled();
  EXPECT_EQ(large.timings.batch_rows, 4);
  const SchedulerStats stats = s.scheduler->Stats();
  EXPECT_EQ(stats.batches.rows, 14u);
  EXPECT_EQ(stats[Outcome::kAnswered], 3u) << "its parts are no requests of anybody's";
  EXPECT_TRUE(s.scheduler->Idle());
}

// Two parts of each wait at a time for one worker, so that others go between them.
TEST(Join, LargeRequestsTakeTurns) {
  Stepped s({.max_rows = 4});
  Call first({10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21}), second({30, 31, 32, 33, 34, 35}, 1),
      small({1, 2, 3, 4}, 2);
  for (Call* call : {&first, &second, &small}) s.scheduler->Submit(call->MakeRequest());
  EXPECT_EQ(s.scheduler->Progress().queued, 5u);
  s.Drain();
  for (Call* call : {&first, &second, &small}) call->ExpectDoubled();
  EXPECT_THAT(s.batches, ElementsAre(ElementsAre(10), ElementsAre(14), ElementsAre(30),
                                     ElementsAre(34), ElementsAre(1), ElementsAre(18)));
  EXPECT_TRUE(s.scheduler->Idle());
}

TEST(Join, OneOfSeveralMayLeaveOrBeLate) {
  Stepped s({.max_rows = 2, .max_queued_rows = 20});
  Call first({1, 2, 3, 4}), left({5, 6, 7}, 1), late({8, 9, 10}, 2), urgent({11, 12, 13}, 3),
      last({14, 15, 16}, 4);
  s.scheduler->Submit(first.MakeRequest());
  s.scheduler->Submit(left.MakeRequest());
  s.scheduler->Submit(late.MakeRequest(s.clock.Now() + milliseconds(5)));
  s.scheduler->Submit(last.MakeRequest());
  auto request = urgent.MakeRequest();
  request.priority = 1;
  s.scheduler->Submit(std::move(request));
  left.cancel->Cancel();
  s.clock.Advance(milliseconds(5));
  s.Drain();
  left.ExpectCode(absl::StatusCode::kCancelled);
  late.ExpectCode(absl::StatusCode::kDeadlineExceeded);
  for (Call* call : {&first, &urgent, &last}) call->ExpectDoubled();
  EXPECT_THAT(s.batches, ElementsAre(ElementsAre(11), ElementsAre(13), ElementsAre(1),
                                     ElementsAre(3), ElementsAre(14), ElementsAre(16)));
  // Nothing is counted for those that left.
  Call one(std::vector<int64_t>(10, 1)), two(std::vector<int64_t>(10, 2)), more({3});
  for (Call* call : {&one, &two, &more}) s.scheduler->Submit(call->MakeRequest());
  more.ExpectCode(absl::StatusCode::kUnavailable);
  s.Drain();
  one.ExpectDoubled();
  two.ExpectDoubled();
}

TEST(Join, StopRefusesLargeRequestsWithoutWorkers) {
  Stepped s({.max_rows = 2});
  Call first({1, 2, 3, 4}), second({5, 6, 7});
  s.scheduler->Submit(first.MakeRequest());
  s.scheduler->Submit(second.MakeRequest());
  s.scheduler->Stop();
  first.ExpectCode(absl::StatusCode::kUnavailable);
  second.ExpectCode(absl::StatusCode::kUnavailable);
}

TEST(Join, APartThatFailsEndsItsRequestAndNoOther) {
  Stepped s({.max_rows = 4});
  Call good({1, 2, 3}), bad({10, 11, 12, -1, 14, 15, 16, 17, 18}), after({20});
  for (Call* call : {&good, &bad, &after}) s.scheduler->Submit(call->MakeRequest());
  s.Drain();
  good.ExpectDoubled();
  after.ExpectDoubled();
  bad.ExpectCode(absl::StatusCode::kOutOfRange);
  EXPECT_EQ(s.scheduler->Stats()[Outcome::kFailed], 1u);
  for (const auto& firsts : s.batches)
    EXPECT_THAT(firsts, testing::Not(testing::Contains(18))) << "the rest of it is not computed";
}

TEST(Join, ALargeRequestLeavesBetweenItsParts) {
  Stepped s({.max_rows = 2});
  Call left({1, 2, 3, 4, 5, 6}), late({7, 8, 9, 10, 11});
  s.scheduler->Submit(left.MakeRequest());
  EXPECT_TRUE(s.scheduler->Step());
  left.cancel->Cancel();
  s.Drain();
  left.ExpectCode(absl::StatusCode::kCancelled);
  s.scheduler->Submit(late.MakeRequest(s.clock.Now() + milliseconds(5)));
  EXPECT_TRUE(s.scheduler->Step());
  s.clock.Advance(milliseconds(5));
  s.Drain();
  late.ExpectCode(absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(s.batches, ElementsAre(ElementsAre(1), ElementsAre(7)));

  // The same while a part runs: the run's end answers.
  Call during({1, 2, 3, 4});
  s.executor->on_run = [&during](absl::Span<const Bound* const>) { during.cancel->Cancel(); };
  s.scheduler->Submit(during.MakeRequest());
  s.Drain();
  during.ExpectCode(absl::StatusCode::kCancelled);
  EXPECT_FALSE(s.scheduler->Step());
}

// Its rows count until its end, also those of parts that do not wait yet.
TEST(Join, ALargeRequestCountsForTheQueuesBounds) {
  Stepped s({.max_rows = 2, .max_queued_rows = 10});
  Call large({1, 2, 3, 4, 5, 6, 7, 8}), fits({9, 10}), full({11});
  s.scheduler->Submit(large.MakeRequest());
  s.scheduler->Submit(fits.MakeRequest());
  s.scheduler->Submit(full.MakeRequest());
  full.ExpectCode(absl::StatusCode::kUnavailable);
  s.Drain();
  large.ExpectDoubled();
  fits.ExpectDoubled();
  Call next({12});
  s.scheduler->Submit(next.MakeRequest());
  s.Drain();
  next.ExpectDoubled();
}

// What was admitted is finished, in all its parts.
TEST(Join, StopFinishesALargeRequest) {
  auto executor = std::make_unique<Doubler>();
  absl::Notification entered, go;
  executor->on_run = [&](absl::Span<const Bound* const>) {
    if (entered.HasBeenNotified()) return;
    entered.Notify();
    go.WaitForNotification();
  };
  Scheduler scheduler(std::move(executor), {.limits = {.max_rows = 2}, .threads = 1, .name = "m"});
  Call large({1, 2, 3, 4, 5, 6, 7, 8, 9});
  scheduler.Submit(large.MakeRequest());
  entered.WaitForNotification();
  std::thread stop([&] { scheduler.Stop(); });
  go.Notify();
  stop.join();
  large.ExpectDoubled();
}

}  // namespace
}  // namespace floe::server
