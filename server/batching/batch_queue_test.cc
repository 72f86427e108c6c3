#include "server/batching/batch_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "server/batching/batch_queue_for_test.h"

namespace floe::server {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using ::testing::ElementsAre;

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

TEST(BatchQueue, WhatNearsItsDeadlineWaitsForNoMoreRows) {
  BatchQueue queue({.max_rows = 8, .timeout = microseconds(1000)});
  const auto hurried = MakeTask(0, 1, kStart + microseconds(50)), with = MakeTask(0),
             other = MakeTask(1);
  hurried->run = microseconds(10);
  for (Task* task : {other.get(), hurried.get(), with.get()}) ASSERT_TRUE(queue.Push(task, kStart));
  EXPECT_EQ(queue.NextBatchTime(), kStart + microseconds(30));
  EXPECT_THAT(Take(queue, kStart + microseconds(29)), ElementsAre());
  EXPECT_THAT(Take(queue, kStart + microseconds(30)), ElementsAre(hurried.get(), with.get()));
  EXPECT_EQ(queue.NextBatchTime(), kStart + microseconds(1000));
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
  EXPECT_EQ(next(), "6:4+2 alone");
  EXPECT_EQ(next(), "9:0+4 full");
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

TEST(BatchQueue, AFullBucketOfUrgentTasksGoesBeforeOthersThatWaitedLongEnough) {
  BatchQueue queue({.max_rows = 2, .timeout = microseconds(100)});
  const auto low = MakeTask(0), low_full = MakeTask(1, 2), urgent = MakeTask(2, 2);
  low->request->priority = low_full->request->priority = 9;
  urgent->request->priority = 1;
  const TimePoint later = kStart + microseconds(100);
  ASSERT_TRUE(queue.Push(low.get(), kStart));
  ASSERT_TRUE(queue.Push(low_full.get(), later));
  ASSERT_TRUE(queue.Push(urgent.get(), later));
  EXPECT_THAT(Take(queue, later), ElementsAre(urgent.get()));
  EXPECT_THAT(Take(queue, later), ElementsAre(low.get()));
  EXPECT_THAT(Take(queue, later), ElementsAre(low_full.get()));
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

std::unique_ptr<Task> MakeLarge(int key, int64_t rows, int priority = kDefaultPriority) {
  auto task = MakeTask(key, rows);
  task->splittable = true;
  task->request->priority = priority;
  task->work = rows * milliseconds(1);
  return task;
}

TEST(BatchQueue, CountsTheWorkAheadOfATask) {
  BatchQueue queue({});
  const auto a = MakeTask(0), b = MakeTask(0), newcomer = MakeTask(0);
  const auto ahead = [&](int priority) {
    newcomer->request->priority = priority;
    return queue.WorkAhead(*newcomer);
  };
  a->work = milliseconds(3);
  b->work = milliseconds(4);
  b->request->priority = 7;
  ASSERT_TRUE(queue.Push(a.get(), kStart));
  ASSERT_TRUE(queue.Push(b.get(), kStart));
  EXPECT_EQ(ahead(4), Duration::zero());
  EXPECT_EQ(ahead(6), milliseconds(3));
  EXPECT_EQ(ahead(7), milliseconds(7));
  queue.Remove(a.get());
  EXPECT_EQ(ahead(9), milliseconds(4));
}

TEST(BatchQueue, OfALargeTaskASliceIsAheadAndWhatIsTakenIsNotCounted) {
  BatchQueue queue({.max_rows = 4});
  const auto large = MakeLarge(0, 10), parked = MakeLarge(1, 6), small = MakeTask(2),
             other = MakeLarge(3, 5);
  ASSERT_TRUE(queue.Push(large.get(), kStart));
  ASSERT_TRUE(queue.Push(parked.get(), kStart));
  const auto expect = [&](int before_small, int before_large, int all) {
    EXPECT_EQ(queue.WorkAhead(*small), milliseconds(before_small));
    EXPECT_EQ(queue.WorkAhead(*other), milliseconds(before_large));
    EXPECT_EQ(queue.Work(), milliseconds(all));
  };
  expect(4, 16, 16);
  Take(queue, kStart);
  expect(4, 12, 12);
  Take(queue, kStart);
  expect(2, 8, 8);
  queue.Remove(large.get());
  expect(4, 6, 6);
  Take(queue, kStart);
  Take(queue, kStart);
  expect(0, 0, 0);
}

TEST(BatchQueue, OneTaskIsSplitAtATimeAndSmallOnesGoInBetween) {
  BatchQueue queue({.max_rows = 4, .timeout = milliseconds(1)});
  const auto first = MakeLarge(0, 10, 9), second = MakeLarge(1, 8), urgent = MakeLarge(2, 6, 1),
             small = MakeTask(3, 4);
  for (Task* task : {first.get(), second.get(), urgent.get(), small.get()})
    ASSERT_TRUE(queue.Push(task, kStart));
  EXPECT_THAT(Take(queue, kStart), ElementsAre(small.get()));
  EXPECT_THAT(Take(queue, kStart), ElementsAre(first.get()));
  ASSERT_TRUE(queue.Push(small.get(), kStart + microseconds(1)));
  EXPECT_THAT(Take(queue, kStart), ElementsAre(first.get()))
      << "it is as urgent as the one that waits for its end";
  EXPECT_THAT(Take(queue, kStart), ElementsAre(first.get())) << "its end waits for no more rows";
  EXPECT_THAT(Take(queue, kStart), ElementsAre(urgent.get()));
  queue.Remove(urgent.get());
  EXPECT_THAT(Take(queue, kStart), ElementsAre(small.get()));
  EXPECT_THAT(Take(queue, kStart), ElementsAre(second.get()));
  EXPECT_THAT(Take(queue, kStart), ElementsAre(second.get()));
  EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace floe::server
