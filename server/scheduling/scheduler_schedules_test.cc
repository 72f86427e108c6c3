// Schedulers under random schedules, and with real threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <random>
#include <set>
#include <thread>
#include <tuple>

#include "base/rounds_for_test.h"
#include "server/scheduling/scheduler_for_test.h"

namespace floe::server {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Random schedules of arrivals, departures, deadlines, failures and runs. Every request is answered
// exactly once and with its own rows. Batches keep their bounds and never mix buckets, and requests
// of a bucket and a priority start in order of arrival.
class RandomSchedule {
 public:
  explicit RandomSchedule(uint32_t seed)
      : rng_(seed),
        max_rows_(1 + Pick(8)),
        stepped_({.max_rows = max_rows_,
                  .timeout = microseconds(Pick(2) * 30),
                  .max_queued_rows = Pick(2) == 0 ? kMostRows : 4 * kMostRows,
                  .max_bytes = kMostRows * sizeof(int64_t)},
                 1 + Pick(2)) {
    stepped_.executor->on_run = [this](absl::Span<const Bound* const> batch) { CheckRun(batch); };
    stepped_.executor->row_takes = microseconds(Pick(3));
  }

  void Run() {
    for (int step = 0; step < 100; ++step) {
      stepped_.clock.Advance(microseconds(Pick(10)));
      const int action = Pick(10);
      if (action < 5) {
        Submit(step);
      } else if (action < 9) {
        stepped_.scheduler->Step();
      } else if (!calls_.empty()) {
        calls_[Pick(static_cast<int>(calls_.size()))]->cancel->Cancel();
      }
    }
    stepped_.Drain();
    stepped_.scheduler->Stop();  // what still waits for fuller batches
    uint64_t answered = 0;
    for (const auto& call : calls_) {
      ASSERT_EQ(call->answers, 1);
      answered += call->status.ok();
      if (call->status.ok()) call->ExpectDoubled();
      const bool bad = std::any_of(call->values.begin(), call->values.end(),
                                   [](int64_t value) { return value < 0; });
      ASSERT_FALSE(bad && call->status.ok());
      ASSERT_TRUE(bad || !absl::IsOutOfRange(call->status)) << "failed for another's rows";
      ASSERT_TRUE(call->cancel->cancelled() || !absl::IsCancelled(call->status));
      ASSERT_TRUE(with_deadline_.count(call.get()) > 0 || !absl::IsDeadlineExceeded(call->status));
    }
    const SchedulerStats stats = stepped_.scheduler->Stats();
    EXPECT_EQ(stats[Outcome::kAnswered], answered);
    EXPECT_EQ(stats.queued_rows, 0);
    EXPECT_EQ(stats.queued_bytes, 0u);
    served += answered;
    asked += calls_.size();
    EXPECT_EQ(stats[Outcome::kAnswered] + stats[Outcome::kFailed] + stats[Outcome::kRefusedFull] +
                  stats[Outcome::kRefusedLate] + stats[Outcome::kRefusedStopped] +
                  stats[Outcome::kExpired] + stats[Outcome::kCancelled],
              calls_.size());
  }

  uint64_t served = 0, asked = 0;

 private:
  static constexpr int64_t kMostRows = 40;
  int Pick(int n) { return static_cast<int>(rng_() % n); }

  void Submit(int step) {
    const int64_t first = 1000 * (step + 1);
    std::vector<int64_t> values(1 + Pick(10));
    for (size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<int64_t>(i);
    if (Pick(12) == 0) values[Pick(static_cast<int>(values.size()))] = -1;
    calls_.push_back(std::make_unique<Call>(values, Pick(3)));
    stepped_.executor->quick = Pick(3) == 0;
    stepped_.executor->splittable = Pick(2) == 0;
    // Large requests of so many have to wait for each other.
    stepped_.executor->output_bytes = Pick(2) * (int64_t{200} << 20);
    Call& call = *calls_.back();
    const bool has_deadline = Pick(3) == 0;
    if (has_deadline) with_deadline_.insert(&call);
    auto request = call.MakeRequest(has_deadline ? stepped_.clock.Now() + microseconds(Pick(40))
                                                 : TimePoint::max());
    request.priority = Pick(2) == 0 ? kDefaultPriority : 1 + Pick(kPriorities);
    request.principal = Pick(4);
    int64_t waiting = static_cast<int64_t>(values.size());  // and this one, at most
    for (const auto& other : calls_)
      if (other.get() != &call && other->answers == 0)
        waiting += static_cast<int64_t>(other->values.size());
    stepped_.scheduler->Submit(std::move(request));
    EXPECT_TRUE(waiting > kMostRows || !absl::IsUnavailable(call.status)) << waiting;
    EXPECT_NE(call.status.code(), absl::StatusCode::kResourceExhausted);
  }

  void CheckRun(absl::Span<const Bound* const> batch) {
    int64_t rows = 0;
    const uint64_t quarantine = static_cast<const Queued*>(batch[0])->quarantine;
    for (const Bound* bound : batch) {
      const auto* const request = static_cast<const Queued*>(bound);
      const auto& inputs = bound->asked->inputs;
      const int64_t bucket = *inputs[1].as<int64_t>();
      rows += request->binding.rows;
      EXPECT_EQ(bucket, *batch[0]->asked->inputs[1].as<int64_t>());
      EXPECT_EQ(request->quarantine, quarantine);
      if (request->binding.rows > max_rows_ || request->whole != nullptr) continue;  // in no bucket
      const auto* const values = inputs[0].as<int64_t>();
      if (values[0] < 0 || !started_.insert(values).second) continue;  // once more, by halves
      int64_t& last = last_started_[{bucket, request->call.priority, quarantine}];
      EXPECT_GE(values[0], last);
      last = values[0];
    }
    EXPECT_TRUE(rows <= max_rows_ || (batch.size() == 1 && !batch[0]->binding.splittable));
  }

  std::mt19937 rng_;
  const int64_t max_rows_;
  std::vector<std::unique_ptr<Call>> calls_;
  Stepped stepped_;
  std::set<const Call*> with_deadline_;  // have a deadline
  std::set<const int64_t*> started_;     // first values of what ran
  std::map<std::tuple<int64_t, int, uint64_t>, int64_t> last_started_;
};

TEST(Scheduler, RandomSchedules) {
  uint64_t served = 0, asked = 0;
  for (int seed = 0; seed < Rounds(3000); ++seed) {
    SCOPED_TRACE(seed);
    RandomSchedule schedule(static_cast<uint32_t>(seed));
    schedule.Run();
    if (HasFailure()) return;
    served += schedule.served;
    asked += schedule.asked;
  }
  EXPECT_GT(2 * served, asked);
}

// Real threads: callers, cancellers, deadlines, inline runs, several workers and a Stop in the
// middle of it.
TEST(Scheduler, ManyThreads) {
  for (const int workers : {1, 2, 4}) {
    SCOPED_TRACE(workers);
    auto executor = std::make_unique<Doubler>(workers + 1);
    executor->quick = workers == 2;
    auto scheduler = std::make_unique<Scheduler>(
        std::move(executor),
        Scheduler::Options{.limits = {.max_rows = 8,
                                      .timeout = microseconds(workers == 4 ? 200 : 0),
                                      .max_queued_rows = 64},
                           .threads = workers,
                           .name = "stress"});
    constexpr int kCallers = 4, kCalls = 400;
    std::vector<std::vector<std::unique_ptr<Call>>> calls(kCallers);
    std::vector<std::thread> threads;
    for (int t = 0; t < kCallers; ++t) {
      for (int i = 0; i < kCalls; ++i)
        calls[t].push_back(std::make_unique<Call>(
            std::vector<int64_t>(1 + i % 3, i % 50 == 7 ? -1 : 100 * t + i), i % 2));
      threads.emplace_back([&, t] {
        for (int i = 0; i < kCalls; ++i) {
          Call& call = *calls[t][i];
          const Duration timeout = i % 7 == 0 ? Duration(microseconds(50)) : Duration(seconds(60));
          scheduler->Submit(call.MakeRequest(Clock::Steady().Now() + timeout));
          if (i % 11 == 0) call.cancel->Cancel();
          if (i % 16 == 0)
            while (call.answers.load(std::memory_order_acquire) == 0) std::this_thread::yield();
        }
      });
    }
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        EXPECT_FALSE(IsStuck(scheduler->Progress(), Clock::Steady().Now()));
        calls[i % kCallers][(i * 37) % kCalls]->cancel->Cancel();
      }
      while (calls[0][kCalls / 2]->answers.load() == 0) std::this_thread::yield();
      if (workers == 4) scheduler->Stop();
    });
    for (std::thread& thread : threads) thread.join();
    scheduler->Stop();
    int served = 0;
    for (const auto& caller : calls)
      for (const auto& call : caller) {
        ASSERT_EQ(call->answers.load(std::memory_order_acquire), 1);
        if (call->status.ok()) call->ExpectDoubled();
        served += call->status.ok();
        if (call->status.code() == absl::StatusCode::kOutOfRange) {
          EXPECT_EQ(call->values[0], -1);
        }
      }
    EXPECT_GT(served, 0);
  }
}

// Who is answered hears when the worker has more to do: sending can then be left to another thread.
TEST(Scheduler, AnswersOfALargeBatchSayWhetherMoreRequestsWait) {
  Stepped s({.max_rows = 4});
  std::vector<std::unique_ptr<Call>> calls;
  for (int64_t i = 0; i < 9; ++i) {
    calls.push_back(std::make_unique<Call>(std::vector<int64_t>{i}));
    s.scheduler->Submit(calls.back()->MakeRequest());
  }
  s.Drain();
  for (size_t i = 0; i < calls.size(); ++i) EXPECT_EQ(calls[i]->timings.more_waits, i < 8) << i;
}

// A worker that is busy must not keep late or abandoned requests waiting for their answer.
TEST(Scheduler, LateRequestsAreAnsweredWhileTheWorkerIsBusy) {
  std::atomic<bool> go{false};
  auto executor = std::make_unique<Doubler>();
  executor->on_run = [&go](absl::Span<const Bound* const>) {
    while (!go) std::this_thread::yield();
  };
  Scheduler scheduler(std::move(executor), {.threads = 1, .name = "busy"});
  Call busy({1}), late({2}), left({3}), waits({4});
  scheduler.Submit(busy.MakeRequest());
  while (scheduler.Progress().runs.empty()) std::this_thread::yield();
  scheduler.Submit(waits.MakeRequest(Clock::Steady().Now() + seconds(600)));
  scheduler.Submit(left.MakeRequest());
  left.cancel->Cancel();
  while (left.answers.load() == 0) std::this_thread::yield();
  // Its thread sleeps now, for ten minutes: an earlier deadline must wake it.
  const TimePoint start = Clock::Steady().Now();
  scheduler.Submit(late.MakeRequest(start + milliseconds(20)));
  while (late.answers.load() == 0) std::this_thread::yield();
  EXPECT_GE(Clock::Steady().Now(), start + milliseconds(20));
  EXPECT_EQ(busy.answers, 0);
  EXPECT_EQ(waits.answers, 0);
  go = true;
  scheduler.Stop();
  late.ExpectCode(absl::StatusCode::kDeadlineExceeded);
  left.ExpectCode(absl::StatusCode::kCancelled);
  busy.ExpectDoubled();
  waits.ExpectDoubled();
}

}  // namespace
}  // namespace floe::server
