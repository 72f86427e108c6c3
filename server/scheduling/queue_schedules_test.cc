// What holds for the queue under random schedules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <random>

#include "server/scheduling/queue_for_test.h"

namespace floe::server {
namespace {

using std::chrono::microseconds;

class Schedule {
 public:
  explicit Schedule(uint32_t seed)
      : rng_(seed),
        limits_{.max_rows = 1 + Pick(6),
                .timeout = microseconds(Pick(2) * 20),
                .max_queued_rows = 1 + Pick(40)},
        aging_matters_(Pick(2) == 0),
        queue_(limits_) {}

  void Step() {
    now_ += aging_matters_ ? kPriorityAging * Pick(2) + microseconds(Pick(5))
                           : Duration(microseconds(Pick(5)));
    const int action = Pick(10);
    if (action < 5) {
      Push();
    } else if (action < 8) {
      Take();
    } else if (action < 9) {
      Remove();
    } else {
      Expire();
    }
    CheckLoad();
  }
  // Nothing starves: what is left goes once all have waited long enough, and goes completely.
  void Finish() {
    while (!waiting_.empty()) {
      now_ += limits_.timeout + kPriorities * kPriorityAging;
      const size_t before = waiting_.size();
      Take();
      ASSERT_LT(waiting_.size(), before);
    }
    EXPECT_TRUE(queue_.load().empty());
    EXPECT_EQ(queue_.NextBatchTime(), TimePoint::max());
  }

 private:
  int Pick(int n) { return static_cast<int>(rng_() % n); }
  // No two are equal, so that one is the earliest.
  TimePoint Deadline() { return now_ + microseconds(Pick(60)) + std::chrono::nanoseconds(++made_); }

  int64_t Max(const Queued& request) const {
    const int64_t own = request.binding.max_rows;
    return own == 0 ? limits_.max_rows : std::min(own, limits_.max_rows);
  }
  static int64_t Counted(const Queued& request) {
    return request.binding.unbatchable ? 1 : request.binding.rows;
  }
  bool IsAlone(const Queued& one) const {
    return one.binding.unbatchable || one.binding.rows > Max(one);
  }
  bool MayShare(const Queued& a, const Queued& b) const {
    return !IsAlone(a) && !IsAlone(b) && a.binding.key == b.binding.key;
  }
  // Whether a must not run after b, with which it may share a run.
  static bool Before(const Queued& a, const Queued& b) {
    return a.level() == b.level() ? a.enqueued < b.enqueued
                                  : a.level() < b.level() && a.enqueued <= b.enqueued;
  }

  void Push() {
    const int key = Pick(3), rows = Pick(12);
    const TimePoint deadline = Pick(3) == 0 ? Deadline() : TimePoint::max();
    const int priority = Pick(3) == 0 ? 1 + Pick(kPriorities) : kDefaultPriority;
    auto request = MakeRequest(key, rows, deadline, priority);
    Binding& binding = request->binding;
    binding.max_rows = binding.key == &kKeys[1] ? 2 : 0;
    binding.unbatchable = binding.rows == 0 || Pick(8) == 0;
    request->work = binding.rows * microseconds(1);
    request->run = microseconds(Pick(3));
    int64_t all = Counted(*request);
    for (const auto& [one, counted] : waiting_) all += counted;
    const bool fits = waiting_.empty() || all <= limits_.max_queued_rows;
    const int64_t counted = Counted(*request);
    ASSERT_EQ(queue_.Push(request.get(), now_), fits);
    if (!fits) return;
    EXPECT_EQ(request->enqueued, now_);
    waiting_.push_back({request.get(), counted});
    all_.push_back(std::move(request));
  }
  void Take() {
    const TimePoint due = queue_.NextBatchTime();
    const Batch batch = TakeBatch(queue_, now_);
    ASSERT_EQ(batch.requests.empty(), due > now_);
    if (batch.requests.empty()) return;
    const Queued& first = *batch.requests[0];
    EXPECT_TRUE(batch.rows <= Max(first) || batch.requests.size() == 1);
    for (Queued* request : batch.requests) {
      EXPECT_TRUE(request == &first || MayShare(*request, first));
      EXPECT_EQ(request->bucket, nullptr);
      Forget(request);
    }
    for (const auto& [left, counted] : waiting_) {
      if (!MayShare(*left, first)) continue;
      for (const Queued* request : batch.requests)
        EXPECT_FALSE(Before(*left, *request)) << "one that came later went first";
      if (batch.close == BatchClose::kIdle || batch.close == BatchClose::kTimeout)
        ADD_FAILURE() << "one that could have shared the run was left";
    }
    if (limits_.timeout == Duration::zero()) CheckRank(first);
  }
  // Without a timeout, nothing that waits has a smaller rank than the first of a batch.
  void CheckRank(const Queued& first) {
    const auto rank = [](const Queued& one) { return one.enqueued + one.level() * kPriorityAging; };
    for (const auto& [left, counted] : waiting_) EXPECT_LE(rank(first), rank(*left));
  }
  void Remove() {
    if (all_.empty()) return;
    Queued* const request = all_[Pick(static_cast<int>(all_.size()))].get();
    ASSERT_EQ(queue_.Remove(request), Forget(request));
  }
  void Expire() {
    while (Queued* const request = queue_.TakeExpired(now_)) {
      EXPECT_LE(request->deadline, now_);
      EXPECT_TRUE(Forget(request));
    }
    for (const auto& [one, counted] : waiting_) EXPECT_GT(one->deadline, now_);
  }
  bool Forget(const Queued* request) {
    const auto it = std::find_if(waiting_.begin(), waiting_.end(),
                                 [&](const auto& one) { return one.first == request; });
    if (it == waiting_.end()) return false;
    waiting_.erase(it);
    return true;
  }
  void CheckLoad() {
    const QueueLoad& load = queue_.load();
    int64_t rows = 0;
    TimePoint deadline = TimePoint::max(), oldest = TimePoint::max();
    Duration work = Duration::zero();
    for (const auto& [one, counted] : waiting_) {
      rows += counted;
      work += one->work;
      deadline = std::min(deadline, one->deadline);
      oldest = std::min(oldest, one->enqueued);
    }
    ASSERT_EQ(load.requests, waiting_.size());
    ASSERT_EQ(load.bytes, 10 * waiting_.size());
    ASSERT_EQ(load.rows, rows);
    ASSERT_EQ(load.Work(), work);
    ASSERT_EQ(queue_.NextDeadline(), deadline);
    ASSERT_EQ(queue_.Oldest() == nullptr, waiting_.empty());
    if (!waiting_.empty()) {
      ASSERT_EQ(queue_.Oldest()->enqueued, oldest);
    }
    // Nobody waits longer than the timeout for a fuller batch.
    ASSERT_LE(queue_.NextBatchTime(),
              oldest == TimePoint::max() ? oldest : oldest + limits_.timeout);
  }

  std::mt19937 rng_;
  const RequestQueue::Limits limits_;
  const bool aging_matters_;
  RequestQueue queue_;
  std::list<std::pair<Queued*, int64_t>> waiting_;  // with the rows they count as
  std::vector<std::unique_ptr<Queued>> all_;
  int made_ = 0;
  TimePoint now_ = kStart;
};

TEST(RequestQueue, KeepsItsPromisesUnderRandomSchedules) {
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    Schedule schedule(seed);
    for (int step = 0; step < 100; ++step) {
      schedule.Step();
      if (testing::Test::HasFailure()) return;
    }
    schedule.Finish();
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace floe::server
