#include "base/task_thread_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/threads_for_test.h"

namespace floe {
namespace {

using ::testing::ElementsAre;

// What tasks use outlives the threads: one that has said so may not have ended.

// A task that says when it has begun and ends when it may.
struct Gate {
  std::promise<void> begun, may_end;
  std::function<void()> Task() {
    return [this] {
      begun.set_value();
      may_end.get_future().wait();
    };
  }
  void AwaitBegin() { begun.get_future().wait(); }
  void Open() { may_end.set_value(); }
};

TEST(TaskThreadPool, OneThreadTakesTasksInOrder) {
  Gate first;
  std::vector<int> order;
  std::promise<void> last;
  TaskThreadPool threads(1, {"one", 0, {}});
  ASSERT_TRUE(threads.Start().ok());
  threads.Post(first.Task());
  for (const int i : {1, 2, 3}) threads.Post([&order, i] { order.push_back(i); });
  threads.Post([&last] { last.set_value(); });
  first.AwaitBegin();
  EXPECT_THAT(order, ElementsAre()) << "no second thread";
  first.Open();
  last.get_future().wait();
  EXPECT_THAT(order, ElementsAre(1, 2, 3));
}

TEST(TaskThreadPool, OneThatHangsKeepsNobodyElse) {
  Gate hung;
  std::promise<void> ran;
  TaskThreadPool threads(1, {"few", 0, {}});
  ASSERT_TRUE(threads.Start().ok());
  threads.Post(hung.Task());
  hung.AwaitBegin();
  threads.Post([&ran] { ran.set_value(); });
  const TimePoint now = Clock::Steady().Now();
  EXPECT_EQ(threads.Relieve(now, std::chrono::minutes(1)), 0u);
  EXPECT_EQ(threads.Relieve(now + std::chrono::minutes(2), std::chrono::minutes(1)), 1u);
  ran.get_future().wait();
  hung.Open();
}

// Each of two tasks waits for the other: they end only if each has a thread.
TEST(TaskThreadPool, StartsThreadsAsTheyAreNeededUpToTheBound) {
  Gate a, b;
  std::promise<std::thread::id> third;
  bool opened = false;
  TaskThreadPool threads(2, {"two", 0, {}});
  ASSERT_TRUE(threads.Start().ok());
  threads.Post(a.Task());
  threads.Post(b.Task());
  a.AwaitBegin();
  b.AwaitBegin();
  threads.Post([&] {
    EXPECT_TRUE(opened) << "both threads had work";
    third.set_value(std::this_thread::get_id());
  });
  opened = true;
  a.Open();
  third.get_future().wait();
  b.Open();
}

TEST(TaskThreadPool, StopWaitsForTheTaskUnderWayAndDropsTheOthers) {
  auto held = std::make_shared<int>();
  Gate first;
  TaskThreadPool threads(1, {"stop", 0, {}});
  ASSERT_TRUE(threads.Start().ok());
  bool ended = false;
  threads.Post([&, run = first.Task()] {
    run();
    ended = true;
  });
  threads.Post([held] { ADD_FAILURE() << "it was to be dropped"; });
  first.AwaitBegin();
  std::thread stopper([&] { threads.Stop(); });
  for (bool stopping = false; !stopping;) {  // what is posted is dropped at once when it is
    const auto token = std::make_shared<int>();
    threads.Post([token] { ADD_FAILURE() << "it was to be dropped"; });
    stopping = token.use_count() == 1;
    std::this_thread::yield();
  }
  first.Open();
  stopper.join();
  EXPECT_TRUE(ended);
  EXPECT_FALSE(threads.Post([held] { ADD_FAILURE() << "it came after Stop"; }));
  EXPECT_EQ(held.use_count(), 1);
  threads.Stop();  // again
}

TEST(TaskThreadPool, WhatWaitsForStartIsDroppedByStop) {
  auto held = std::make_shared<int>();
  TaskThreadPool threads(1, {"never", 0, {}});
  EXPECT_TRUE(threads.Post([held] { ADD_FAILURE() << "it was not started"; }));
  threads.Stop();
  EXPECT_EQ(held.use_count(), 1) << "what a task holds is let go";
}

// After all tasks that have come, and when the time comes that it named.
TEST(TaskThreadPool, CallsWhenNoTaskWaits) {
  std::vector<int> order;
  std::promise<void> first, timed;
  int calls = 0;
  TaskThreadPool threads(1, {"idle", 0, {}}, [&]() -> TimePoint {
    order.push_back(0);
    switch (++calls) {
      case 1:
        return Clock::Steady().Now() + std::chrono::milliseconds(1);
      case 2:
        timed.set_value();
        return TimePoint::max();
      default:
        first.set_value();
        return TimePoint::max();
    }
  });
  ASSERT_TRUE(threads.Start().ok());
  timed.get_future().wait();
  Gate gate;
  threads.Post(gate.Task());
  for (const int i : {1, 2, 3}) threads.Post([&order, i] { order.push_back(i); });
  gate.Open();
  first.get_future().wait();
  threads.Stop();
  EXPECT_THAT(order, ElementsAre(0, 0, 1, 2, 3, 0));
}

TEST(TaskThreadPool, NiceOnesAreBatchWork) {
  const int base = getpriority(PRIO_PROCESS, 0);
  for (const int nicer : {0, 3}) {
    struct {
      std::string name;
      int nice = -1, policy = -1;
    } seen;
    std::promise<void> done;
    TaskThreadPool threads(1, {"worker", nicer, {}});
    ASSERT_TRUE(threads.Start().ok());
    threads.Post([&] {
      char name[16];
      pthread_getname_np(pthread_self(), name, sizeof name);
      seen = {name, getpriority(PRIO_PROCESS, 0), sched_getscheduler(0)};
      done.set_value();
    });
    done.get_future().wait();
    EXPECT_EQ(seen.name, "worker");
    EXPECT_EQ(seen.nice, std::min(base + nicer, 19));
    EXPECT_EQ(seen.policy, nicer == 0 ? SCHED_OTHER : SCHED_BATCH);
  }
}

// In a process of its own, that of a user who may have no more threads.
TEST(TaskThreadPoolDeathTest, NoFirstThreadIsAnErrorThatSaysWhatToRaise) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto try_in_vain = [] {
    AllowNoMoreThreads();
    TaskThreadPool threads(2, {"scan", 0, {}});
    threads.Post([] {});
    const absl::Status status = threads.Start();
    const std::string message(status.message());
    const bool said = absl::IsResourceExhausted(status) &&
                      message.find("'scan'") != std::string::npos &&
                      message.find("TasksMax") != std::string::npos;
    threads.Post([] {});
    threads.Stop();
    std::_Exit(said ? 0 : 3);
  };
  EXPECT_EXIT(try_in_vain(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace floe
