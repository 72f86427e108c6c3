#include "server/batching/batch_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <optional>
#include <random>

namespace floe::server {
namespace {

using std::chrono::microseconds;
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

std::vector<Task*> Take(BatchQueue& queue, TimePoint now) {
  std::vector<Task*> batch;
  queue.TakeBatch(now, &batch);
  return batch;
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

TEST(BatchQueue, BoundedInTasksAndBytes) {
  BatchQueue queue({.max_tasks = 2, .max_bytes = 15});
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
  std::vector<Task*> expired;
  queue.Expire(kStart + microseconds(9), &expired);
  EXPECT_THAT(expired, ElementsAre());
  queue.Expire(kStart + microseconds(10), &expired);
  EXPECT_THAT(expired, ElementsAre(b.get()));
  EXPECT_EQ(queue.NextDeadline(), kStart + microseconds(30));
  EXPECT_THAT(Take(queue, kStart), ElementsAre(a.get(), c.get()));
  EXPECT_EQ(queue.NextDeadline(), TimePoint::max());
}

// The same rules written the slow and obvious way: one list in order of arrival.
class PlainQueue {
 public:
  explicit PlainQueue(const BatchQueue::Limits& limits) : limits_(limits) {}

  bool Push(Task* task) {
    if (tasks_.size() >= limits_.max_tasks) return false;
    tasks_.push_back(task);
    return true;
  }
  static bool Alone(const Task& task, int64_t max_rows) {
    return task.alone || task.rows > max_rows;
  }
  std::vector<Task*> Bucket(const Task* first) const {
    std::vector<Task*> bucket;
    for (Task* task : tasks_)
      if (task == first || (!Alone(*first, limits_.max_rows) && !Alone(*task, limits_.max_rows) &&
                            task->key == first->key))
        bucket.push_back(task);
    return bucket;
  }
  // The tasks that may be taken now as one batch; empty: none is due. With a timeout several
  // buckets may be full, and the real queue gives the one that filled first, so `first` says which
  // was chosen.
  std::vector<Task*> BatchStartingAt(const Task* first) const {
    std::vector<Task*> batch;
    int64_t rows = 0;
    for (Task* task : Bucket(first)) {
      if (!batch.empty() && rows + task->rows > limits_.max_rows) break;
      rows += task->rows;
      batch.push_back(task);
    }
    return batch;
  }
  bool Due(const Task* first, TimePoint now) const {
    const bool oldest_is_ripe = now - tasks_.front()->enqueued >= limits_.timeout;
    if (oldest_is_ripe) return first == tasks_.front();
    int64_t rows = 0;
    for (const Task* task : Bucket(first)) rows += task->rows;
    return Bucket(first).front() == first &&
           (Alone(*first, limits_.max_rows) || rows >= limits_.max_rows);
  }
  bool AnyDue(TimePoint now) const {
    return std::any_of(tasks_.begin(), tasks_.end(),
                       [&](const Task* task) { return Due(task, now); });
  }
  void Remove(Task* task) { tasks_.remove(task); }
  const std::list<Task*>& tasks() const { return tasks_; }

 private:
  BatchQueue::Limits limits_;
  std::list<Task*> tasks_;
};

void RunSchedule(uint32_t seed) {
  std::mt19937 rng(seed);
  const auto pick = [&rng](int n) { return static_cast<int>(rng() % n); };
  const BatchQueue::Limits limits{.max_rows = 1 + pick(6),
                                  .timeout = microseconds(pick(2) * 20),
                                  .max_tasks = static_cast<size_t>(1 + pick(12))};
  BatchQueue queue(limits);
  PlainQueue plain(limits);
  std::vector<std::unique_ptr<Task>> all;
  TimePoint now = kStart;
  for (int step = 0; step < 300; ++step) {
    now += microseconds(pick(5));
    const int action = pick(10);
    if (action < 5) {
      auto task = MakeTask(pick(3), pick(8),
                           pick(3) == 0 ? now + microseconds(pick(60)) : TimePoint::max());
      task->alone = task->rows == 0 || pick(8) == 0;
      const bool pushed = queue.Push(task.get(), now);
      ASSERT_EQ(pushed, plain.Push(task.get()));
      if (pushed) all.push_back(std::move(task));
    } else if (action < 8) {
      const std::vector<Task*> batch = Take(queue, now);
      ASSERT_EQ(!batch.empty(), !plain.tasks().empty() && plain.AnyDue(now));
      if (batch.empty()) continue;
      ASSERT_TRUE(plain.Due(batch[0], now));
      ASSERT_EQ(batch, plain.BatchStartingAt(batch[0]));
      for (Task* task : batch) plain.Remove(task);
    } else if (action < 9 && !all.empty()) {
      Task* task = all[pick(static_cast<int>(all.size()))].get();
      const bool queued = std::count(plain.tasks().begin(), plain.tasks().end(), task) != 0;
      ASSERT_EQ(queue.Remove(task), queued);
      plain.Remove(task);
    } else {
      std::vector<Task*> expired, expected;
      for (Task* task : plain.tasks())
        if (task->request->deadline <= now) expected.push_back(task);
      queue.Expire(now, &expired);
      ASSERT_THAT(expired, testing::UnorderedElementsAreArray(expected));
      for (Task* task : expired) plain.Remove(task);
    }
    ASSERT_EQ(queue.size(), plain.tasks().size());
    ASSERT_EQ(queue.bytes(), 10 * plain.tasks().size());
    TimePoint earliest = TimePoint::max();
    for (Task* task : plain.tasks()) earliest = std::min(earliest, task->request->deadline);
    ASSERT_EQ(queue.NextDeadline(), earliest);
    ASSERT_EQ(queue.oldest(), plain.tasks().empty() ? nullptr : plain.tasks().front());
    ASSERT_EQ(!plain.tasks().empty() && plain.AnyDue(now), queue.NextBatchTime() <= now);
  }
}

TEST(BatchQueue, RandomSchedulesAgreeWithThePlainRules) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    RunSchedule(seed);
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace floe::server
