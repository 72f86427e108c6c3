#include "server/batching/batch_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <random>
#include <string>

namespace floe::server {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using ::testing::ElementsAre;

const TimePoint kStart{std::chrono::hours(1)};
const int kKeys[4] = {};  // addresses to tell buckets apart

std::unique_ptr<Task> MakeTask(int key, int64_t rows = 1, TimePoint deadline = TimePoint::max()) {
  auto task = std::make_unique<Task>();
  task->request = std::make_unique<InferRequest>();
  task->request->deadline = deadline;
  task->key = &kKeys[key];
  task->rows = rows;
  task->bytes = 10;
  return task;
}

Batch TakeBatch(BatchQueue& queue, TimePoint now) {
  Batch batch;
  queue.TakeBatch(now, &batch);
  int64_t rows = 0;
  for (const Slice& slice : batch.slices) rows += slice.rows;
  EXPECT_EQ(rows, batch.rows);
  return batch;
}

std::vector<Task*> Take(BatchQueue& queue, TimePoint now) {
  std::vector<Task*> tasks;
  for (const Slice& slice : TakeBatch(queue, now).slices) tasks.push_back(slice.task);
  return tasks;
}

TEST(BatchQueue, OldestBucketFirstAndInOrderWithin) {
  BatchQueue queue({.max_rows = 3});
  std::vector<std::unique_ptr<Task>> t;
  for (const int key : {0, 1, 0, 1, 0, 0}) {
    t.push_back(MakeTask(key));
    ASSERT_TRUE(queue.Push(t.back().get(), kStart));
  }
  EXPECT_THAT(Take(queue, kStart), ElementsAre(t[0].get(), t[2].get(), t[4].get()));
  EXPECT_THAT(Take(queue, kStart), ElementsAre(t[1].get(), t[3].get()));
  EXPECT_THAT(Take(queue, kStart), ElementsAre(t[5].get()));
  EXPECT_THAT(Take(queue, kStart), ElementsAre());
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.bytes(), 0u);
}

TEST(BatchQueue, ATaskThatDoesNotFitEndsTheBatch) {
  BatchQueue queue({.max_rows = 8});
  const auto a = MakeTask(0, 5), b = MakeTask(0, 4), c = MakeTask(0, 1), large = MakeTask(0, 9),
             d = MakeTask(0, 1);
  for (Task* task : {a.get(), b.get(), c.get(), large.get(), d.get()})
    ASSERT_TRUE(queue.Push(task, kStart));
  EXPECT_THAT(Take(queue, kStart), ElementsAre(a.get()));
  EXPECT_THAT(Take(queue, kStart), ElementsAre(b.get(), c.get(), d.get()));
  EXPECT_THAT(Take(queue, kStart), ElementsAre(large.get()));
}

TEST(BatchQueue, InputsWithoutRowsMustBeEqual) {
  BatchQueue queue({});
  std::vector<float> same1 = {1, 2}, same2 = {1, 2}, other = {1, 3};
  std::vector<std::string> text1 = {"a"}, text2 = {"a"};
  const auto view = [](auto& values, DType dtype) {
    return TensorView{dtype, Shape({static_cast<int64_t>(values.size())}), values.data()};
  };
  const auto a = MakeTask(0), b = MakeTask(0), c = MakeTask(0), s1 = MakeTask(0), s2 = MakeTask(0),
             none = MakeTask(0);
  a->fixed = {view(same1, DType::kFloat32)};
  b->fixed = {view(other, DType::kFloat32)};
  c->fixed = {view(same2, DType::kFloat32)};
  s1->fixed = {view(text1, DType::kString)};
  s2->fixed = {view(text2, DType::kString)};
  for (Task* task : {a.get(), b.get(), s1.get(), none.get(), c.get(), s2.get()})
    ASSERT_TRUE(queue.Push(task, kStart));
  EXPECT_THAT(Take(queue, kStart), ElementsAre(a.get(), c.get()));
  EXPECT_THAT(Take(queue, kStart), ElementsAre(b.get()));
  EXPECT_THAT(Take(queue, kStart), ElementsAre(s1.get(), s2.get()));
  EXPECT_THAT(Take(queue, kStart), ElementsAre(none.get()));
}

TEST(BatchQueue, TimeoutWaitsForRowsOrAge) {
  BatchQueue queue({.max_rows = 2, .timeout = microseconds(100)});
  const auto a = MakeTask(0), b1 = MakeTask(1), b2 = MakeTask(1), alone = MakeTask(2);
  alone->alone = true;
  EXPECT_EQ(queue.NextBatchTime(), TimePoint::max());
  ASSERT_TRUE(queue.Push(a.get(), kStart));
  EXPECT_EQ(queue.NextBatchTime(), kStart + microseconds(100));
  EXPECT_THAT(Take(queue, kStart + microseconds(99)), ElementsAre());
  ASSERT_TRUE(queue.Push(b1.get(), kStart + microseconds(1)));
  ASSERT_TRUE(queue.Push(alone.get(), kStart + microseconds(1)));
  EXPECT_THAT(Take(queue, kStart + microseconds(2)), ElementsAre(alone.get()));
  EXPECT_THAT(Take(queue, kStart + microseconds(2)), ElementsAre());
  ASSERT_TRUE(queue.Push(b2.get(), kStart + microseconds(3)));
  EXPECT_LE(queue.NextBatchTime(), kStart);
  EXPECT_THAT(Take(queue, kStart + microseconds(3)), ElementsAre(b1.get(), b2.get()));
  EXPECT_THAT(Take(queue, kStart + microseconds(100)), ElementsAre(a.get()));
}

TEST(BatchQueue, GoesWithThePreferredRowsThatAreThere) {
  BatchQueue queue({.max_rows = 8, .timeout = microseconds(100), .preferred = {2, 4}});
  std::vector<std::unique_ptr<Task>> t;
  const auto push = [&](int count, TimePoint now) {
    for (int i = 0; i < count; ++i) {
      t.push_back(MakeTask(0));
      ASSERT_TRUE(queue.Push(t.back().get(), now));
    }
  };
  push(1, kStart);
  EXPECT_EQ(queue.NextBatchTime(), kStart + microseconds(100)) << "it waits for a second";
  push(1, kStart);
  EXPECT_LE(queue.NextBatchTime(), kStart);
  push(4, kStart);
  const Batch four = TakeBatch(queue, kStart);
  EXPECT_EQ(four.rows, 4);
  EXPECT_STREQ(BatchCloseName(four.close), "preferred");
  EXPECT_EQ(TakeBatch(queue, kStart).rows, 2);
  push(1, kStart);
  EXPECT_EQ(TakeBatch(queue, kStart).rows, 0);
  EXPECT_EQ(TakeBatch(queue, kStart + microseconds(100)).rows, 1) << "as many as there are";
}

TEST(BatchQueue, BoundedInRows) {
  BatchQueue queue({.max_rows = 16, .max_queued_rows = 16});
  const auto large = MakeTask(0, 64), a = MakeTask(0, 10), b = MakeTask(0, 7), c = MakeTask(0, 6),
             alone = MakeTask(1, 1000);
  large->splittable = true;
  EXPECT_TRUE(queue.Push(large.get(), kStart)) << "a lone task may exceed them";
  EXPECT_FALSE(queue.Push(a.get(), kStart));
  ASSERT_TRUE(queue.Remove(large.get()));
  EXPECT_TRUE(queue.Push(a.get(), kStart));
  EXPECT_FALSE(queue.Push(b.get(), kStart));
  alone->alone = true;
  EXPECT_TRUE(queue.Push(alone.get(), kStart)) << "it counts as one row";
  EXPECT_FALSE(queue.Push(c.get(), kStart));
  ASSERT_TRUE(queue.Remove(alone.get()));
  EXPECT_TRUE(queue.Push(c.get(), kStart));
}

TEST(BatchQueue, BoundedInRequestsWhateverTheirRows) {
  BatchQueue queue({.max_rows = 16, .max_queued_rows = 2, .tasks_are_rows = true});
  const auto a = MakeTask(0, 64), b = MakeTask(0, 64), c = MakeTask(0, 1);
  a->splittable = b->splittable = true;
  EXPECT_TRUE(queue.Push(a.get(), kStart));
  EXPECT_TRUE(queue.Push(b.get(), kStart));
  EXPECT_FALSE(queue.Push(c.get(), kStart));
  ASSERT_TRUE(queue.Remove(a.get()));
  EXPECT_TRUE(queue.Push(c.get(), kStart));
}

TEST(BatchQueue, BoundedInTasksAndBytes) {
  BatchQueue queue({.max_queued_rows = 2, .max_bytes = 15});
  const auto huge = MakeTask(0), a = MakeTask(0), b = MakeTask(0), c = MakeTask(0);
  huge->bytes = 100;
  EXPECT_TRUE(queue.Push(huge.get(), kStart))
      << "a lone task may exceed the bytes, or it could never run";
  EXPECT_FALSE(queue.Push(a.get(), kStart));
  Take(queue, kStart);
  a->bytes = b->bytes = c->bytes = 5;
  EXPECT_TRUE(queue.Push(a.get(), kStart));
  EXPECT_TRUE(queue.Push(b.get(), kStart));
  EXPECT_FALSE(queue.Push(c.get(), kStart));
  EXPECT_TRUE(queue.Remove(a.get()));
  EXPECT_FALSE(queue.Remove(a.get()));
  EXPECT_TRUE(queue.Push(c.get(), kStart));
}

TEST(BatchQueue, ExpiresByDeadline) {
  BatchQueue queue({});
  const auto a = MakeTask(0, 1, kStart + microseconds(30)),
             b = MakeTask(0, 1, kStart + microseconds(10)), c = MakeTask(0);
  for (Task* task : {a.get(), b.get(), c.get()}) ASSERT_TRUE(queue.Push(task, kStart));
  EXPECT_EQ(queue.NextDeadline(), kStart + microseconds(10));
  EXPECT_EQ(queue.TakeExpired(kStart + microseconds(9)), nullptr);
  EXPECT_EQ(queue.TakeExpired(kStart + microseconds(10)), b.get());
  EXPECT_EQ(queue.TakeExpired(kStart + microseconds(10)), nullptr);
  EXPECT_EQ(queue.NextDeadline(), kStart + microseconds(30));
  EXPECT_THAT(Take(queue, kStart), ElementsAre(a.get(), c.get()));
  EXPECT_EQ(queue.NextDeadline(), TimePoint::max());
}

TEST(BatchQueue, ALargeTaskIsTakenInSlicesThatFillBatches) {
  BatchQueue queue({.max_rows = 4});
  const auto a = MakeTask(0, 3), large = MakeTask(0, 10), b = MakeTask(0, 2), c = MakeTask(0, 3);
  large->splittable = b->splittable = true;
  for (Task* task : {a.get(), large.get(), b.get(), c.get()}) ASSERT_TRUE(queue.Push(task, kStart));
  const auto next = [&queue] {
    std::string text;
    const Batch batch = TakeBatch(queue, kStart);
    for (const Slice& slice : batch.slices)
      text += std::to_string(slice.task->rows) + ":" + std::to_string(slice.first) + "+" +
              std::to_string(slice.rows) + " ";
    return text + BatchCloseName(batch.close);
  };
  EXPECT_EQ(next(), "3:0+3 10:0+1 full");
  EXPECT_EQ(next(), "2:0+2 no_fit") << "what is left of it waits behind the others";
  EXPECT_EQ(next(), "3:0+3 10:1+1 full") << "what fits into a batch is not split";
  EXPECT_EQ(next(), "10:2+4 full");
  EXPECT_EQ(queue.size(), 1u) << "it is queued as long as rows of it are";
  EXPECT_EQ(next(), "10:6+4 full");
  EXPECT_TRUE(queue.empty());

  const auto lone = MakeTask(0, 6), gone = MakeTask(0, 9);
  lone->alone = lone->splittable = gone->splittable = true;
  ASSERT_TRUE(queue.Push(lone.get(), kStart));
  ASSERT_TRUE(queue.Push(gone.get(), kStart));
  EXPECT_EQ(next(), "6:0+4 alone");
  EXPECT_EQ(next(), "9:0+4 full");
  EXPECT_EQ(next(), "6:4+2 alone");
  EXPECT_TRUE(queue.Remove(gone.get()));
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.bytes(), 0u);
}

TEST(BatchQueue, ATaskMayNameSmallerBatches) {
  BatchQueue queue({.max_rows = 8, .timeout = microseconds(100)});
  std::vector<std::unique_ptr<Task>> t;
  for (int i = 0; i < 3; ++i) {
    t.push_back(MakeTask(0));
    t.back()->max_rows = 2;
    ASSERT_TRUE(queue.Push(t.back().get(), kStart));
  }
  EXPECT_THAT(Take(queue, kStart), ElementsAre(t[0].get(), t[1].get()));
  EXPECT_THAT(Take(queue, kStart), ElementsAre());
}

// Padding lets tasks that may name different sizes share a bucket: it keeps to the least, and those
// that fit into a run of their own stay whole.
TEST(BatchQueue, TheSmallestSizeNamedHoldsForTheBucket) {
  BatchQueue queue({.max_rows = 8});
  const auto many = MakeTask(0, 6), a = MakeTask(0), b = MakeTask(0), wide = MakeTask(0);
  many->splittable = true;
  wide->max_rows = 2;
  for (Task* task : {a.get(), wide.get(), many.get(), b.get()})
    ASSERT_TRUE(queue.Push(task, kStart));
  EXPECT_THAT(Take(queue, kStart), ElementsAre(a.get(), wide.get()));
  const Batch batch = TakeBatch(queue, kStart);
  ASSERT_EQ(batch.slices.size(), 1u);
  EXPECT_FALSE(batch.slices[0].partial());
  EXPECT_THAT(Take(queue, kStart), ElementsAre(b.get()));
}

TEST(BatchQueue, ALargeTaskKeepsNobodyFromHisTurn) {
  BatchQueue queue({.max_rows = 4});
  const auto large = MakeTask(0, 1000), other = MakeTask(1);
  large->splittable = true;
  ASSERT_TRUE(queue.Push(large.get(), kStart));
  ASSERT_TRUE(queue.Push(other.get(), kStart + microseconds(1)));
  EXPECT_THAT(Take(queue, kStart + microseconds(2)), ElementsAre(large.get()));
  EXPECT_THAT(Take(queue, kStart + microseconds(3)), ElementsAre(other.get()));
}

TEST(BatchQueue, WhyABatchWasClosed) {
  const auto close = [](BatchQueue& queue, TimePoint now) {
    return std::string(BatchCloseName(TakeBatch(queue, now).close));
  };
  BatchQueue greedy({.max_rows = 2});
  const auto a = MakeTask(0), b = MakeTask(0), c = MakeTask(0), apart = MakeTask(0);
  apart->apart = 7;
  for (Task* task : {a.get(), b.get(), c.get(), apart.get()})
    ASSERT_TRUE(greedy.Push(task, kStart));
  EXPECT_EQ(close(greedy, kStart), "full");
  EXPECT_EQ(close(greedy, kStart), "idle") << "a caller apart shares no batch";
  EXPECT_EQ(close(greedy, kStart), "apart");
  BatchQueue waiting({.max_rows = 2, .timeout = microseconds(10)});
  ASSERT_TRUE(waiting.Push(a.get(), kStart));
  EXPECT_EQ(close(waiting, kStart + microseconds(10)), "timeout");
  ASSERT_TRUE(waiting.Push(a.get(), kStart));
  waiting.StopWaiting();
  EXPECT_EQ(close(waiting, kStart), "drain");
}

TEST(BatchQueue, UrgentTasksGoFirstUntilOthersHaveAged) {
  BatchQueue queue({.max_rows = 2});
  const auto task = [](int key, int priority) {
    auto made = MakeTask(key);
    made->request->priority = priority;
    return made;
  };
  const auto low1 = task(0, 9), low2 = task(0, 9), usual = task(0, 5), urgent = task(1, 1),
             beyond = task(1, -3), aged = task(2, 6), late = task(3, 5);
  for (Task* one : {low1.get(), low2.get(), usual.get(), urgent.get(), beyond.get()})
    ASSERT_TRUE(queue.Push(one, kStart));
  EXPECT_THAT(Take(queue, kStart), ElementsAre(urgent.get(), beyond.get()));
  EXPECT_THAT(Take(queue, kStart), ElementsAre(usual.get(), low1.get()));
  ASSERT_TRUE(queue.Push(aged.get(), kStart));
  ASSERT_TRUE(queue.Push(late.get(), kStart + kPriorityAgeing + microseconds(1)));
  EXPECT_EQ(queue.oldest()->enqueued, kStart);
  EXPECT_THAT(Take(queue, kStart), ElementsAre(aged.get()));
  EXPECT_THAT(Take(queue, kStart), ElementsAre(late.get()));
  EXPECT_THAT(Take(queue, kStart), ElementsAre(low2.get()));
}

TEST(BatchQueue, CountsTheWorkAheadOfAPriority) {
  BatchQueue queue({});
  const auto a = MakeTask(0), b = MakeTask(0);
  a->work = milliseconds(3);
  b->work = milliseconds(4);
  b->request->priority = 7;
  ASSERT_TRUE(queue.Push(a.get(), kStart));
  ASSERT_TRUE(queue.Push(b.get(), kStart));
  EXPECT_EQ(queue.WorkAhead(4), Duration::zero());
  EXPECT_EQ(queue.WorkAhead(6), milliseconds(3));
  EXPECT_EQ(queue.WorkAhead(7), milliseconds(7));
  queue.Remove(a.get());
  EXPECT_EQ(queue.WorkAhead(9), milliseconds(4));
}

// The same rules written the slow and obvious way: one list in order of arrival, searched anew for
// every answer.
class PlainQueue {
 public:
  explicit PlainQueue(const BatchQueue::Limits& limits) : limits_(limits) {}
  struct Waiting {
    Task* task;
    TimePoint arrived;
    int64_t counted;  // rows
    int64_t taken = 0;
    int64_t left() const { return task->rows - taken; }
  };

  bool Push(Task* task, TimePoint now) {
    const auto rows = [](const Task& one) { return one.alone ? 1 : one.rows; };
    int64_t all = rows(*task);
    for (const Waiting& one : waiting_) all += one.counted;
    if (!waiting_.empty() && all > limits_.max_queued_rows) return false;
    waiting_.push_back({task, now, rows(*task)});
    return true;
  }
  int64_t Max(const Task& task) const {
    return task.max_rows == 0 ? limits_.max_rows : std::min(task.max_rows, limits_.max_rows);
  }
  bool Alone(const Task& task) const {
    return task.alone || (task.rows > Max(task) && !task.splittable);
  }
  // Whether a goes before b.
  static bool Before(const Waiting& a, const Waiting& b) {
    const int pa = a.task->request->priority, pb = b.task->request->priority;
    const TimePoint ra = a.arrived + pa * kPriorityAgeing, rb = b.arrived + pb * kPriorityAgeing;
    return ra != rb ? ra < rb : pa < pb;
  }
  // All that may run with the task, those first that go first.
  std::vector<Waiting> Bucket(const Task* of) const {
    std::vector<Waiting> bucket;
    for (const Waiting& one : waiting_)
      if (one.task == of || (!Alone(*of) && !Alone(*one.task) && one.task->key == of->key))
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
  // The task whose bucket must go next; null when none has waited long enough. Then any full bucket
  // may go, but nothing else.
  const Task* Ripe(TimePoint now) const {
    const Waiting* first = nullptr;
    for (const Waiting& one : waiting_)
      if (now - one.arrived >= limits_.timeout && (first == nullptr || Before(one, *first)))
        first = &one;
    return first == nullptr ? nullptr : first->task;
  }
  bool AnyDue(TimePoint now) const {
    return Ripe(now) != nullptr || std::any_of(waiting_.begin(), waiting_.end(),
                                               [&](const Waiting& one) { return Full(one.task); });
  }
  void Took(const Slice& slice, TimePoint now) {
    for (auto it = waiting_.begin(); it != waiting_.end(); ++it) {
      if (it->task != slice.task) continue;
      it->taken += slice.rows;
      if (it->left() > 0) waiting_.push_back({it->task, now, it->counted, it->taken});
      waiting_.erase(it);
      return;
    }
  }
  bool Remove(const Task* task) {
    return waiting_.remove_if([task](const Waiting& one) { return one.task == task; }) > 0;
  }
  const std::list<Waiting>& waiting() const { return waiting_; }

 private:
  BatchQueue::Limits limits_;
  std::list<Waiting> waiting_;
};

bool SameSlices(const std::vector<Slice>& a, const std::vector<Slice>& b) {
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

  void Push() {
    auto task = MakeTask(Pick(3), Pick(12),
                         Pick(3) == 0 ? now_ + microseconds(Pick(60)) : TimePoint::max());
    task->alone = task->rows == 0 || Pick(8) == 0;
    task->splittable = Pick(2) == 0;
    task->max_rows = task->key == &kKeys[1] ? 2 : 0;
    if (Pick(3) == 0) task->request->priority = 1 + Pick(kPriorities);
    const bool pushed = plain_.Push(task.get(), now_);
    ASSERT_EQ(queue_.Push(task.get(), now_), pushed);
    if (pushed) all_.push_back(std::move(task));
  }
  void Take() {
    const Batch batch = TakeBatch(queue_, now_);
    ASSERT_EQ(!batch.slices.empty(), plain_.AnyDue(now_));
    if (batch.slices.empty()) return;
    const Task* const ripe = plain_.Ripe(now_);
    const Task* const of = ripe != nullptr ? ripe : batch.slices[0].task;
    ASSERT_TRUE(ripe != nullptr || plain_.Full(of));
    ASSERT_TRUE(SameSlices(batch.slices, plain_.BatchOf(of)));
    for (const Slice& slice : batch.slices) {
      plain_.Took(slice, now_);
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
      ASSERT_EQ(queue_.oldest()->enqueued, waiting.front().arrived);
    }
    ASSERT_EQ(plain_.AnyDue(now_), queue_.NextBatchTime() <= now_);
  }

  std::mt19937 rng_;
  const BatchQueue::Limits limits_;
  const bool ageing_matters_;
  BatchQueue queue_;
  PlainQueue plain_;
  std::vector<std::unique_ptr<Task>> all_;
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
