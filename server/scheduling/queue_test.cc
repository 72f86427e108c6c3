#include "server/scheduling/queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "server/scheduling/queue_for_test.h"

namespace floe::server {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using ::testing::ElementsAre;

std::vector<Queued*> Take(RequestQueue& queue, TimePoint now) {
  const Batch batch = TakeBatch(queue, now);
  return {batch.requests.begin(), batch.requests.end()};
}

TEST(RequestQueue, OldestBucketFirstAndInOrderWithin) {
  RequestQueue queue({.max_rows = 3});
  std::vector<std::unique_ptr<Queued>> t;
  for (const int key : {0, 1, 0, 1, 0, 0}) {
    t.push_back(MakeRequest(key));
    ASSERT_TRUE(queue.Push(t.back().get(), kStart));
  }
  EXPECT_THAT(Take(queue, kStart), ElementsAre(t[0].get(), t[2].get(), t[4].get()));
  EXPECT_THAT(Take(queue, kStart), ElementsAre(t[1].get(), t[3].get()));
  EXPECT_THAT(Take(queue, kStart), ElementsAre(t[5].get()));
  EXPECT_THAT(Take(queue, kStart), ElementsAre());
  EXPECT_TRUE(queue.load().empty());
  EXPECT_EQ(queue.load().bytes, 0u);
}

TEST(RequestQueue, ARequestThatDoesNotFitEndsTheBatch) {
  RequestQueue queue({.max_rows = 8});
  const auto a = MakeRequest(0, 5), b = MakeRequest(0, 4), c = MakeRequest(0, 1),
             large = MakeRequest(0, 9), d = MakeRequest(0, 1);
  for (Queued* request : {a.get(), b.get(), c.get(), large.get(), d.get()})
    ASSERT_TRUE(queue.Push(request, kStart));
  EXPECT_THAT(Take(queue, kStart), ElementsAre(a.get()));
  EXPECT_THAT(Take(queue, kStart), ElementsAre(b.get(), c.get(), d.get()));
  EXPECT_THAT(Take(queue, kStart), ElementsAre(large.get()));
}

TEST(RequestQueue, InputsWithoutRowsMustBeEqual) {
  RequestQueue queue({});
  std::vector<float> same1 = {1, 2}, same2 = {1, 2}, other = {1, 3};
  std::vector<std::string> text1 = {"a"}, text2 = {"a"};
  const auto with = [](auto& values, DType dtype) {
    auto asked = std::make_shared<Inference>();
    asked->inputs = {{}, {dtype, Shape({static_cast<int64_t>(values.size())}), values.data()}};
    auto request = MakeRequest(0, 1, TimePoint::max(), kDefaultPriority, std::move(asked));
    request->binding.fixed = {1};
    return request;
  };
  const auto a = with(same1, DType::kFloat32), b = with(other, DType::kFloat32),
             c = with(same2, DType::kFloat32), s1 = with(text1, DType::kString),
             s2 = with(text2, DType::kString), none = MakeRequest(0);
  for (Queued* request : {a.get(), b.get(), s1.get(), none.get(), c.get(), s2.get()})
    ASSERT_TRUE(queue.Push(request, kStart));
  EXPECT_THAT(Take(queue, kStart), ElementsAre(a.get(), c.get()));
  EXPECT_THAT(Take(queue, kStart), ElementsAre(b.get()));
  EXPECT_THAT(Take(queue, kStart), ElementsAre(s1.get(), s2.get()));
  EXPECT_THAT(Take(queue, kStart), ElementsAre(none.get()));
}

TEST(RequestQueue, TimeoutWaitsForRowsOrAge) {
  RequestQueue queue({.max_rows = 2, .timeout = microseconds(100)});
  const auto a = MakeRequest(0), b1 = MakeRequest(1), b2 = MakeRequest(1), alone = MakeRequest(2);
  alone->binding.unbatchable = true;
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

TEST(RequestQueue, WhatNearsItsDeadlineWaitsForNoMoreRows) {
  RequestQueue queue({.max_rows = 8, .timeout = microseconds(1000)});
  const auto urgent = MakeRequest(0, 1, kStart + microseconds(50)), with = MakeRequest(0),
             other = MakeRequest(1);
  urgent->run = microseconds(10);
  for (Queued* request : {other.get(), urgent.get(), with.get()})
    ASSERT_TRUE(queue.Push(request, kStart));
  EXPECT_EQ(queue.NextBatchTime(), kStart + microseconds(30));
  EXPECT_THAT(Take(queue, kStart + microseconds(29)), ElementsAre());
  EXPECT_THAT(Take(queue, kStart + microseconds(30)), ElementsAre(urgent.get(), with.get()));
  EXPECT_EQ(queue.NextBatchTime(), kStart + microseconds(1000));
  Clear(queue);
}

TEST(RequestQueue, BoundedInRows) {
  RequestQueue queue({.max_rows = 16, .max_queued_rows = 16});
  const auto large = MakeRequest(0, 64), a = MakeRequest(0, 10), b = MakeRequest(0, 7),
             c = MakeRequest(0, 6), alone = MakeRequest(1, 1000);
  EXPECT_TRUE(queue.Push(large.get(), kStart)) << "a lone request may exceed them";
  EXPECT_FALSE(queue.Push(a.get(), kStart));
  ASSERT_TRUE(queue.Remove(large.get()));
  EXPECT_TRUE(queue.Push(a.get(), kStart));
  EXPECT_FALSE(queue.Push(b.get(), kStart));
  alone->binding.unbatchable = true;
  EXPECT_TRUE(queue.Push(alone.get(), kStart)) << "it counts as one row";
  EXPECT_FALSE(queue.Push(c.get(), kStart));
  ASSERT_TRUE(queue.Remove(alone.get()));
  EXPECT_TRUE(queue.Push(c.get(), kStart));
  Clear(queue);
}

TEST(RequestQueue, BoundedInRequestsWhateverTheirRows) {
  RequestQueue queue({.max_rows = 16, .max_queued_rows = 2, .requests_are_rows = true});
  const auto a = MakeRequest(0, 16), b = MakeRequest(0, 16), c = MakeRequest(0, 1);
  EXPECT_TRUE(queue.Push(a.get(), kStart));
  EXPECT_TRUE(queue.Push(b.get(), kStart));
  EXPECT_FALSE(queue.Push(c.get(), kStart));
  ASSERT_TRUE(queue.Remove(a.get()));
  EXPECT_TRUE(queue.Push(c.get(), kStart));
  Clear(queue);
}

// Parts are pushed one after the other and not bounded: their whole was.
TEST(RequestQueue, ALargeRequestCountsUntilItsEnd) {
  RequestQueue queue({.max_rows = 4, .max_queued_rows = 10});
  const auto whole = MakeRequest(0, 9), part = MakeRequest(0, 4), other = MakeRequest(1),
             full = MakeRequest(1), second = MakeRequest(0, 9);
  whole->work = milliseconds(9);
  ASSERT_TRUE(queue.AddWhole(whole.get()));
  EXPECT_EQ(queue.load().Work(), milliseconds(9));
  EXPECT_EQ(queue.load().WorkAhead(2), Duration::zero());
  ASSERT_EQ(queue.StartWhole(), whole.get());
  part->whole = whole.get();
  part->work = milliseconds(4);
  ASSERT_TRUE(queue.Push(part.get(), kStart));
  EXPECT_EQ(queue.load().Work(), milliseconds(9));
  EXPECT_EQ(queue.load().WorkAhead(2), milliseconds(4));
  EXPECT_TRUE(queue.Push(other.get(), kStart));
  EXPECT_FALSE(queue.Push(full.get(), kStart));
  EXPECT_FALSE(queue.AddWhole(second.get()));
  EXPECT_THAT(Take(queue, kStart), ElementsAre(part.get()));
  EXPECT_EQ(queue.load().Work(), milliseconds(5));
  queue.EndWhole(*whole);
  EXPECT_EQ(queue.load().rows, 1);
  EXPECT_EQ(queue.load().Work(), Duration::zero());
  EXPECT_TRUE(queue.Push(full.get(), kStart));
  Clear(queue);
}

TEST(RequestQueue, BoundedInRequestsAndBytes) {
  RequestQueue queue({.max_queued_rows = 2, .max_bytes = 15});
  const auto huge = MakeRequest(0), a = MakeRequest(0), b = MakeRequest(0), c = MakeRequest(0);
  huge->binding.bytes = 100;
  EXPECT_TRUE(queue.Push(huge.get(), kStart))
      << "a lone request may exceed the bytes, or it could never run";
  EXPECT_FALSE(queue.Push(a.get(), kStart));
  Take(queue, kStart);
  a->binding.bytes = b->binding.bytes = c->binding.bytes = 5;
  EXPECT_TRUE(queue.Push(a.get(), kStart));
  EXPECT_TRUE(queue.Push(b.get(), kStart));
  EXPECT_FALSE(queue.Push(c.get(), kStart));
  EXPECT_TRUE(queue.Remove(a.get()));
  EXPECT_FALSE(queue.Remove(a.get()));
  EXPECT_TRUE(queue.Push(c.get(), kStart));
  Clear(queue);
}

TEST(RequestQueue, ExpiresByDeadline) {
  RequestQueue queue({});
  const auto a = MakeRequest(0, 1, kStart + microseconds(30)),
             b = MakeRequest(0, 1, kStart + microseconds(10)), c = MakeRequest(0);
  for (Queued* request : {a.get(), b.get(), c.get()}) ASSERT_TRUE(queue.Push(request, kStart));
  EXPECT_EQ(queue.NextDeadline(), kStart + microseconds(10));
  EXPECT_EQ(queue.TakeExpired(kStart + microseconds(9)), nullptr);
  EXPECT_EQ(queue.TakeExpired(kStart + microseconds(10)), b.get());
  EXPECT_EQ(queue.TakeExpired(kStart + microseconds(10)), nullptr);
  EXPECT_EQ(queue.NextDeadline(), kStart + microseconds(30));
  EXPECT_THAT(Take(queue, kStart), ElementsAre(a.get(), c.get()));
  EXPECT_EQ(queue.NextDeadline(), TimePoint::max());
}

TEST(RequestQueue, ARequestMayNameSmallerBatches) {
  RequestQueue queue({.max_rows = 8, .timeout = microseconds(100)});
  std::vector<std::unique_ptr<Queued>> t;
  for (int i = 0; i < 3; ++i) {
    t.push_back(MakeRequest(0));
    t.back()->binding.max_rows = 2;
    ASSERT_TRUE(queue.Push(t.back().get(), kStart));
  }
  EXPECT_THAT(Take(queue, kStart), ElementsAre(t[0].get(), t[1].get()));
  EXPECT_THAT(Take(queue, kStart), ElementsAre());
  Clear(queue);
}

// Padding lets requests that may name different sizes share a bucket: it keeps to the least, and
// those that fit into a run of their own stay whole.
TEST(RequestQueue, TheSmallestSizeNamedHoldsForTheBucket) {
  RequestQueue queue({.max_rows = 8});
  const auto many = MakeRequest(0, 6), a = MakeRequest(0), b = MakeRequest(0),
             wide = MakeRequest(0);
  wide->binding.max_rows = 2;
  for (Queued* request : {a.get(), wide.get(), many.get(), b.get()})
    ASSERT_TRUE(queue.Push(request, kStart));
  EXPECT_THAT(Take(queue, kStart), ElementsAre(a.get(), wide.get()));
  EXPECT_THAT(Take(queue, kStart), ElementsAre(many.get()));
  EXPECT_THAT(Take(queue, kStart), ElementsAre(b.get()));
}

TEST(RequestQueue, WhyABatchWasClosed) {
  const auto close = [](RequestQueue& queue, TimePoint now) {
    return std::string(BatchCloseName(TakeBatch(queue, now).close));
  };
  RequestQueue greedy({.max_rows = 2});
  const auto a = MakeRequest(0), b = MakeRequest(0), c = MakeRequest(0), bad = MakeRequest(0);
  bad->quarantine = 7;
  for (Queued* request : {a.get(), b.get(), c.get(), bad.get()})
    ASSERT_TRUE(greedy.Push(request, kStart));
  EXPECT_EQ(close(greedy, kStart), "full");
  EXPECT_EQ(close(greedy, kStart), "idle") << "a caller in quarantine shares no batch";
  EXPECT_EQ(close(greedy, kStart), "quarantined");
  RequestQueue waiting({.max_rows = 2, .timeout = microseconds(10)});
  ASSERT_TRUE(waiting.Push(a.get(), kStart));
  EXPECT_EQ(close(waiting, kStart + microseconds(10)), "timeout");
  ASSERT_TRUE(waiting.Push(a.get(), kStart));
  waiting.StopWaiting();
  EXPECT_EQ(close(waiting, kStart), "drain");
}

TEST(RequestQueue, AFullBucketOfUrgentRequestsGoesBeforeOthersThatWaitedLongEnough) {
  RequestQueue queue({.max_rows = 2, .timeout = microseconds(100)});
  const auto low = MakeRequest(0, 1, TimePoint::max(), 3),
             low_full = MakeRequest(1, 2, TimePoint::max(), 3),
             urgent = MakeRequest(2, 2, TimePoint::max(), 1);
  const TimePoint later = kStart + microseconds(100);
  ASSERT_TRUE(queue.Push(low.get(), kStart));
  ASSERT_TRUE(queue.Push(low_full.get(), later));
  ASSERT_TRUE(queue.Push(urgent.get(), later));
  EXPECT_THAT(Take(queue, later), ElementsAre(urgent.get()));
  EXPECT_THAT(Take(queue, later), ElementsAre(low.get()));
  EXPECT_THAT(Take(queue, later), ElementsAre(low_full.get()));
}

TEST(RequestQueue, UrgentRequestsGoFirstUntilOthersHaveAged) {
  RequestQueue queue({.max_rows = 2});
  const auto make = [](int key, int priority) {
    return MakeRequest(key, 1, TimePoint::max(), priority);
  };
  const auto low1 = make(0, 3), low2 = make(0, 9), usual = make(0, 2), urgent = make(1, 1),
             beyond = make(1, -3), aged = make(2, 3), late = make(3, 2);
  for (Queued* one : {low1.get(), low2.get(), usual.get(), urgent.get(), beyond.get()})
    ASSERT_TRUE(queue.Push(one, kStart));
  EXPECT_THAT(Take(queue, kStart), ElementsAre(urgent.get(), beyond.get()));
  EXPECT_THAT(Take(queue, kStart), ElementsAre(usual.get(), low1.get()));
  ASSERT_TRUE(queue.Remove(low2.get()));
  ASSERT_TRUE(queue.Push(aged.get(), kStart));
  ASSERT_TRUE(queue.Push(late.get(), kStart + kPriorityAging + microseconds(1)));
  EXPECT_EQ(queue.Oldest()->enqueued, kStart);
  EXPECT_THAT(Take(queue, kStart), ElementsAre(aged.get()));
  EXPECT_THAT(Take(queue, kStart), ElementsAre(late.get()));
}

TEST(RequestQueue, CountsTheWorkAheadOfARequest) {
  RequestQueue queue({});
  const auto a = MakeRequest(0), b = MakeRequest(0, 1, TimePoint::max(), 3);
  a->work = milliseconds(3);
  b->work = milliseconds(4);
  ASSERT_TRUE(queue.Push(a.get(), kStart));
  ASSERT_TRUE(queue.Push(b.get(), kStart));
  EXPECT_EQ(queue.load().WorkAhead(0), Duration::zero());
  EXPECT_EQ(queue.load().WorkAhead(1), milliseconds(3));
  EXPECT_EQ(queue.load().WorkAhead(2), milliseconds(7));
  queue.Remove(a.get());
  EXPECT_EQ(queue.load().WorkAhead(2), milliseconds(4));
  Clear(queue);
}

}  // namespace
}  // namespace floe::server
