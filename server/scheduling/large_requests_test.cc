#include "server/scheduling/large_requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "server/scheduling/scheduler_for_test.h"

namespace floe::server {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;

constexpr int64_t kMiB = int64_t{1} << 20;

// One large request has room beside another's 200 MiB when it has few outputs only.
struct Crowded : Stepped {
  Crowded() : Stepped({.max_rows = 2}) { executor->output_bytes = 200 * kMiB; }
  void Submit(Call& call, TimePoint deadline = TimePoint::max()) {
    scheduler->Submit(call.MakeRequest(deadline));
  }
  // Nothing is left of requests that have ended.
  void ExpectNothingCounted() {
    const SchedulerStats stats = scheduler->Stats();
    EXPECT_EQ(stats.queued_rows, 0);
    EXPECT_EQ(stats.queued_bytes, 0u);
    EXPECT_EQ(stats.progress.queued, 0u);
    EXPECT_TRUE(scheduler->Idle());
  }
};

TEST(LargeRequests, ThoseWithoutRoomStartInOrderAsOthersEnd) {
  Crowded s;
  Call first({10, 11, 12, 13, 14}), second({20, 21, 22}), third({30, 31, 32, 33, 34});
  for (Call* call : {&first, &second}) s.Submit(*call);
  s.executor->output_bytes = kMiB;  // it has room, but is not the next
  s.Submit(third);
  EXPECT_EQ(s.scheduler->Progress().queued, 2u) << "parts of the first alone";
  s.Drain();
  for (Call* call : {&first, &second, &third}) call->ExpectDoubled();
  EXPECT_THAT(s.batches,
              ElementsAre(ElementsAre(10), ElementsAre(12), ElementsAre(14), ElementsAre(20),
                          ElementsAre(22), ElementsAre(30), ElementsAre(32), ElementsAre(34)));
  s.ExpectNothingCounted();
}

TEST(LargeRequests, SmallOnesRunBesideEachOther) {
  Crowded s;
  s.executor->output_bytes = 100 * kMiB;
  Call first({10, 11, 12}), second({20, 21, 22}), third({30, 31, 32});
  for (Call* call : {&first, &second, &third}) s.Submit(*call);
  EXPECT_EQ(s.scheduler->Progress().queued, 4u);
  s.Drain();
  for (Call* call : {&first, &second, &third}) call->ExpectDoubled();
  s.ExpectNothingCounted();
}

// However large: nothing else could make room for it.
TEST(LargeRequests, TheOnlyOneNeedsNoRoom) {
  Crowded s;
  s.executor->output_bytes = 1000 * kMiB;
  Call only({10, 11, 12});
  s.Submit(only);
  s.Drain();
  only.ExpectDoubled();
}

TEST(LargeRequests, OneThatWaitsMayLeaveOrBeLate) {
  Crowded s;
  Call first({10, 11, 12}), left({20, 21, 22}), late({30, 31, 32}), last({40, 41, 42});
  s.Submit(first);
  s.Submit(left);
  s.Submit(late, s.clock.Now() + milliseconds(5));
  s.Submit(last);
  EXPECT_EQ(s.scheduler->Stats().queued_rows, 12);
  left.cancel->Cancel();
  EXPECT_EQ(s.scheduler->Stats().queued_rows, 9) << "at once, not when it is its turn";
  s.clock.Advance(milliseconds(5));
  EXPECT_TRUE(s.scheduler->Step());
  left.ExpectCode(absl::StatusCode::kCancelled);
  late.ExpectCode(absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(first.answers, 0);
  s.Drain();
  first.ExpectDoubled();
  last.ExpectDoubled();
  EXPECT_EQ(s.scheduler->Stats()[Outcome::kCancelled], 1u);
  EXPECT_EQ(s.scheduler->Stats()[Outcome::kExpired], 1u);
  s.ExpectNothingCounted();
}

TEST(LargeRequests, StopRefusesThoseThatWait) {
  Crowded s;
  Call first({10, 11, 12}), second({20, 21, 22});
  for (Call* call : {&first, &second}) s.Submit(*call);
  s.scheduler->Stop();
  for (Call* call : {&first, &second}) call->ExpectCode(absl::StatusCode::kUnavailable);
  s.ExpectNothingCounted();
}

// While the only worker is busy: those that wait are not answered by it.
TEST(LargeRequests, OneThatWaitsEndsWhileTheWorkerIsBusy) {
  absl::Notification entered, go;
  auto executor = std::make_unique<Doubler>();
  executor->output_bytes = 200 * kMiB;
  executor->on_run = [&](absl::Span<const Bound* const>) {
    if (entered.HasBeenNotified()) return;
    entered.Notify();
    go.WaitForNotification();
  };
  Scheduler scheduler(std::move(executor), {.limits = {.max_rows = 2}, .threads = 1, .name = "m"});
  Call first({10, 11, 12}), late({20, 21, 22}), left({30, 31, 32}), last({40, 41, 42});
  scheduler.Submit(first.MakeRequest());
  entered.WaitForNotification();
  scheduler.Submit(last.MakeRequest(Clock::Steady().Now() + std::chrono::hours(1)));
  scheduler.Submit(late.MakeRequest(Clock::Steady().Now() + milliseconds(10)));
  scheduler.Submit(left.MakeRequest());
  left.cancel->Cancel();
  for (const Call* call : {&left, &late})
    while (call->answers == 0) std::this_thread::yield();
  EXPECT_EQ(first.answers, 0);
  go.Notify();
  scheduler.Stop();  // finishes what waits, too
  left.ExpectCode(absl::StatusCode::kCancelled);
  late.ExpectCode(absl::StatusCode::kDeadlineExceeded);
  first.ExpectDoubled();
  last.ExpectDoubled();
}

// Each that fails at once starts the next: the stack does not grow with them.
TEST(LargeRequests, ALongChainOfFailuresDoesNotNest) {
  constexpr int kRequests = 20'000;
  auto executor = std::make_unique<Doubler>();
  executor->output_bytes = 200 * kMiB;
  SchedulerState state(std::move(executor),
                       {.limits = {.max_rows = 1, .max_queued_rows = INT64_MAX}});
  LargeRequests large(state, [](std::unique_ptr<Queued> part) {
    part->call.complete(absl::InternalError("no part is computed"), {});
  });
  std::vector<std::unique_ptr<Call>> calls;
  for (int64_t i = 0; i < kRequests; ++i) {
    calls.push_back(std::make_unique<Call>(std::vector<int64_t>{i, i}));
    auto request = std::make_unique<Queued>(calls.back()->MakeRequest());
    auto bound = state.executor->Bind(*request->asked);
    ASSERT_TRUE(bound.ok());
    request->binding = *std::move(bound);
    MutexLock lock(state.mutex);
    ASSERT_TRUE(state.queue.AddWhole(request.release()));
  }
  large.StartWaiting();
  for (const auto& call : calls) call->ExpectCode(absl::StatusCode::kInternal);
  MutexLock lock(state.mutex);
  EXPECT_TRUE(state.queue.load().done());
}

}  // namespace
}  // namespace floe::server
