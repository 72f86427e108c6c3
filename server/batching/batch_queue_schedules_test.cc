// The queue under random schedules, against its rules written plainly.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <random>

#include "server/batching/batch_queue_for_test.h"

namespace floe::server {
namespace {

using std::chrono::microseconds;

// The same rules written the slow and obvious way: one list in order of arrival, searched anew for
// every answer.
class PlainQueue {
 public:
  explicit PlainQueue(const BatchQueue::Limits& limits) : limits_(limits) {}
  struct Waiting {
    Task* task;
    TimePoint arrived;
    int64_t counted;  // rows
    bool parked;
    int priority = task->request->priority;
    TimePoint pushed = arrived;
    int64_t taken = 0;
    int64_t left() const { return task->rows - taken; }
  };

  bool Push(Task* task, TimePoint now) {
    const auto rows = [](const Task& one) { return one.alone ? 1 : one.rows; };
    int64_t all = rows(*task);
    for (const Waiting& one : waiting_) all += one.counted;
    if (!waiting_.empty() && all > limits_.max_queued_rows) return false;
    waiting_.push_back({task, now, rows(*task), Splits(*task) && Split() != nullptr});
    latest_ = now;
    return true;
  }
  int64_t Max(const Task& task) const {
    return task.max_rows == 0 ? limits_.max_rows : std::min(task.max_rows, limits_.max_rows);
  }
  bool Splits(const Task& task) const { return task.splittable && task.rows > Max(task); }
  // The one task that is split now.
  const Waiting* Split() const {
    for (const Waiting& one : waiting_)
      if (Splits(*one.task) && !one.parked) return &one;
    return nullptr;
  }
  // The parked task that is split next.
  const Waiting* NextSplit() const {
    const Waiting* next = nullptr;
    for (const Waiting& one : waiting_)
      if (one.parked && (next == nullptr || Before(one, *next))) next = &one;
    return next;
  }
  bool Alone(const Task& task) const {
    return task.alone || (task.rows > Max(task) && !task.splittable);
  }
  // Whether a goes before b.
  static bool Before(const Waiting& a, const Waiting& b) {
    const int pa = a.priority, pb = b.priority;
    const TimePoint ra = a.arrived + pa * kPriorityAgeing, rb = b.arrived + pb * kPriorityAgeing;
    return ra != rb ? ra < rb : pa < pb;
  }
  // All that may run with the task, those first that go first.
  std::vector<Waiting> Bucket(const Task* of) const {
    std::vector<Waiting> bucket;
    for (const Waiting& one : waiting_)
      if (one.parked)
        continue;
      else if (one.task == of || (!Alone(*of) && !Alone(*one.task) && one.task->key == of->key))
        bucket.push_back(one);
    std::stable_sort(bucket.begin(), bucket.end(), Before);
    return bucket;
  }
  int64_t RowsOf(const Task* of) const {
    int64_t rows = 0;
    for (const Waiting& one : Bucket(of)) rows += one.left();
    return rows;
  }
  bool Full(const Task* of) const {
    const int64_t rows = RowsOf(of);
    const bool preferred = !limits_.preferred.empty() && rows >= limits_.preferred.front();
    for (const Waiting& one : Bucket(of))
      if (Splits(*one.task)) return true;
    return Alone(*of) || rows >= Max(*of) || preferred;
  }
  int64_t Room(const Task* of) const {
    int64_t room = Max(*of);
    for (const int64_t size : limits_.preferred)
      if (size <= RowsOf(of)) room = std::min(size, Max(*of));
    return room;
  }
  // The batch that starts with the first of the task's bucket.
  std::vector<Slice> BatchOf(const Task* of) const {
    std::vector<Slice> batch;
    int64_t room = Room(of);
    for (const Waiting& one : Bucket(of)) {
      const bool large = one.task->rows > Max(*of);
      if (!batch.empty() && one.left() > room && !large) break;
      const bool split = large && one.task->splittable;
      const int64_t rows = split ? std::min(one.left(), room) : one.left();
      batch.push_back({one.task, one.taken, rows});
      room -= rows;
      if (room <= 0) break;
    }
    return batch;
  }
  // Whether the task's bucket need not wait any more.
  bool MayGo(const Task* of, TimePoint now) const {
    const std::vector<Waiting> bucket = Bucket(of);
    return Full(of) || std::any_of(bucket.begin(), bucket.end(), [&](const Waiting& one) {
             return now - one.arrived >= limits_.timeout || Hurried(one, now);
           });
  }
  // With the earliest deadline of all, and so near it that it waits for no more rows.
  bool Hurried(const Waiting& one, TimePoint now) const {
    const TimePoint deadline = one.task->request->deadline;
    if (deadline == TimePoint::max()) return false;
    for (const Waiting& other : waiting_)
      if (other.task->request->deadline < deadline) return false;
    const Duration spare = deadline - one.pushed - one.task->run;
    return now >= one.pushed + spare - spare / 4;
  }
  // The task whose bucket must go next; null when none may.
  const Task* Next(TimePoint now) const {
    const Waiting* first = nullptr;
    for (const Waiting& one : waiting_)
      if (!one.parked && MayGo(one.task, now) && (first == nullptr || Before(one, *first)))
        first = &one;
    return first == nullptr ? nullptr : first->task;
  }
  void Took(absl::Span<const Slice> batch, TimePoint now) {
    latest_ = now;
    for (const Slice& slice : batch) {
      const auto it = Find(slice.task);
      it->taken += slice.rows;
      it->arrived = now;
      if (const Waiting* next = NextSplit(); next != nullptr)
        it->priority = std::min(it->priority, next->priority);
      if (it->left() > 0)
        waiting_.splice(waiting_.end(), waiting_, it);
      else
        waiting_.erase(it);
    }
    LetParkedIn();
  }
  bool Remove(const Task* task) {
    const auto it = Find(task);
    if (it == waiting_.end()) return false;
    waiting_.erase(it);
    LetParkedIn();
    return true;
  }
  // Of what goes before the task, were it queued now, at a microsecond a row.
  Duration WorkAhead(const Task& task) const {
    int64_t rows = 0;
    for (const Waiting& one : waiting_) {
      const bool first = one.priority <= task.request->priority;
      if (!Splits(*one.task))
        rows += first ? one.left() : 0;
      else if (Splits(task))
        rows += first || !one.parked ? one.left() : 0;
      else if (!one.parked)
        rows += first ? std::min(one.left(), Max(*one.task)) : 0;
    }
    return rows * microseconds(1);
  }
  const std::list<Waiting>& waiting() const { return waiting_; }

 private:
  std::list<Waiting>::iterator Find(const Task* task) {
    return std::find_if(waiting_.begin(), waiting_.end(),
                        [task](const Waiting& one) { return one.task == task; });
  }
  void LetParkedIn() {
    const Waiting* const next = NextSplit();
    if (next == nullptr || Split() != nullptr) return;
    const auto it = Find(next->task);
    it->parked = false;
    it->arrived = latest_;
    waiting_.splice(waiting_.end(), waiting_, it);
  }

  BatchQueue::Limits limits_;
  std::list<Waiting> waiting_;
  TimePoint latest_;
};

bool SameSlices(absl::Span<const Slice> a, absl::Span<const Slice> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Slice& x, const Slice& y) {
    return x.task == y.task && x.first == y.first && x.rows == y.rows;
  });
}

class Schedule {
 public:
  explicit Schedule(uint32_t seed)
      : rng_(seed),
        limits_{.max_rows = 1 + Pick(6),
                .timeout = microseconds(Pick(2) * 20),
                .preferred = Preferred(Pick(4)),
                .max_queued_rows = 1 + Pick(40)},
        ageing_matters_(Pick(2) == 0),
        queue_(limits_),
        plain_(limits_) {}

  void Step() {
    now_ += ageing_matters_ ? kPriorityAgeing * Pick(2) + microseconds(Pick(5))
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
    Compare();
  }

 private:
  int Pick(int n) { return static_cast<int>(rng_() % n); }
  static std::vector<int64_t> Preferred(int which) {
    const std::vector<int64_t> some[] = {{}, {}, {2}, {2, 3, 5}};
    return some[which];
  }

  // No two are equal, so that one is the earliest.
  TimePoint Deadline() { return now_ + microseconds(Pick(60)) + std::chrono::nanoseconds(++made_); }
  void Push() {
    auto task = MakeTask(Pick(3), Pick(12), Pick(3) == 0 ? Deadline() : TimePoint::max());
    task->alone = task->rows == 0 || Pick(8) == 0;
    task->splittable = Pick(2) == 0;
    task->max_rows = task->key == &kKeys[1] ? 2 : 0;
    if (Pick(3) == 0) task->request->priority = 1 + Pick(kPriorities);
    task->work = task->rows * microseconds(1);
    task->run = microseconds(Pick(3));
    const bool pushed = plain_.Push(task.get(), now_);
    ASSERT_EQ(queue_.Push(task.get(), now_), pushed);
    if (pushed) all_.push_back(std::move(task));
  }
  void Take() {
    const Batch batch = TakeBatch(queue_, now_);
    const Task* const next = plain_.Next(now_);
    ASSERT_EQ(batch.slices.empty(), next == nullptr);
    if (next == nullptr) return;
    ASSERT_TRUE(SameSlices(batch.slices, plain_.BatchOf(next)));
    plain_.Took(batch.slices, now_);
    for (const Slice& slice : batch.slices) {
      EXPECT_EQ(slice.task->bucket == nullptr, slice.first + slice.rows == slice.task->rows);
    }
  }
  void Remove() {
    if (all_.empty()) return;
    Task* task = all_[Pick(static_cast<int>(all_.size()))].get();
    ASSERT_EQ(queue_.Remove(task), plain_.Remove(task));
  }
  void Expire() {
    std::vector<Task*> expired, expected;
    for (const auto& one : plain_.waiting())
      if (one.task->request->deadline <= now_) expected.push_back(one.task);
    while (Task* const task = queue_.TakeExpired(now_)) expired.push_back(task);
    ASSERT_THAT(expired, testing::UnorderedElementsAreArray(expected));
    for (Task* task : expired) plain_.Remove(task);
  }
  void Compare() {
    const auto& waiting = plain_.waiting();
    ASSERT_EQ(queue_.size(), waiting.size());
    ASSERT_EQ(queue_.bytes(), 10 * waiting.size());
    TimePoint earliest = TimePoint::max();
    for (const auto& one : waiting) earliest = std::min(earliest, one.task->request->deadline);
    ASSERT_EQ(queue_.NextDeadline(), earliest);
    ASSERT_EQ(queue_.oldest() == nullptr, waiting.empty());
    if (!waiting.empty()) {
      const auto oldest =
          std::find_if(waiting.begin(), waiting.end(), [](const auto& one) { return !one.parked; });
      ASSERT_EQ(queue_.oldest()->enqueued, oldest->arrived);
    }
    auto newcomer = MakeTask(0, 1 + Pick(12));
    newcomer->splittable = Pick(2) == 0;
    newcomer->request->priority = 1 + Pick(kPriorities);
    ASSERT_EQ(queue_.WorkAhead(*newcomer), plain_.WorkAhead(*newcomer));
    ASSERT_EQ(plain_.Next(now_) != nullptr, queue_.NextBatchTime() <= now_);
  }

  std::mt19937 rng_;
  const BatchQueue::Limits limits_;
  const bool ageing_matters_;
  BatchQueue queue_;
  PlainQueue plain_;
  std::vector<std::unique_ptr<Task>> all_;
  int made_ = 0;
  TimePoint now_ = kStart;
};

TEST(BatchQueue, RandomSchedulesAgreeWithThePlainRules) {
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    Schedule schedule(seed);
    for (int step = 0; step < 100; ++step) {
      schedule.Step();
      if (testing::Test::HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace floe::server
