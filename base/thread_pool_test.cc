#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <thread>
#include <vector>

namespace floe {
namespace {

TEST(ThreadPool, EveryChunkRunsExactlyOnceForEveryThreadCount) {
  for (int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (int round = 0; round < 50; ++round) {
      std::vector<int> hits(97, 0);
      pool.ParallelFor(97, [&](int64_t i) { ++hits[i]; });
      EXPECT_EQ(hits, std::vector<int>(97, 1)) << threads << " threads, round " << round;
    }
  }
}

// However long ago the last loop was: a worker that missed one would leave the caller waiting.
TEST(ThreadPool, EveryLoopWakesItsWorkers) {
  ThreadPool pool(3);
  for (int round = 0; round < 2000; ++round) {
    std::atomic<int> begun{0};
    pool.ParallelFor(3, [&](int64_t) {
      for (++begun; begun < 3;) std::this_thread::yield();
    });
    // Some of the rounds find workers asleep, some find them looking.
    for (int i = 0; i < round % 64 * 8; ++i) std::this_thread::yield();
  }
}

// What a thread wrote in one loop is in its cache in the next.
TEST(ThreadPool, EachThreadBeginsWithTheSameChunksInEveryLoop) {
  ThreadPool pool(2);
  const std::thread::id caller = std::this_thread::get_id();
  for (int round = 0; round < 500; ++round) {
    // A chunk each, which ends when both have begun.
    std::atomic<int> begun{0};
    std::thread::id by[2];
    pool.ParallelFor(2, [&](int64_t i) {
      by[i] = std::this_thread::get_id();
      for (++begun; begun < 2;) std::this_thread::yield();
    });
    ASSERT_EQ(by[0], caller) << "round " << round;
    ASSERT_NE(by[1], caller);
  }
}

// Shares are no walls: a thread that comes late leaves its own to the others.
TEST(ThreadPool, ThreadsThatAreDoneHelpTheOthers) {
  ThreadPool pool(2);
  std::atomic<int> left{9};
  pool.ParallelFor(10, [&](int64_t i) {
    if (i != 0) return static_cast<void>(--left);
    while (left > 0) std::this_thread::yield();  // the first of five waits for all nine
  });
  EXPECT_EQ(left, 0);
}

// A body that runs out of memory ends the loop for its caller, and nothing else.
TEST(ThreadPool, WhatABodyThrowsReachesTheCaller) {
  ThreadPool pool(2);
  const std::thread::id caller = std::this_thread::get_id();
  for (const bool on_caller : {true, false}) {
    // Both take part: a chunk each, which ends when both have begun.
    std::atomic<int> begun{0};
    const auto body = [&](int64_t) {
      for (++begun; begun < 2;) std::this_thread::yield();
      if ((std::this_thread::get_id() == caller) == on_caller) throw std::bad_alloc();
    };
    EXPECT_THROW(pool.ParallelFor(2, body), std::bad_alloc) << "on the caller: " << on_caller;
    std::vector<int> hits(97, 0);
    pool.ParallelFor(97, [&](int64_t i) { ++hits[i]; });
    EXPECT_EQ(hits, std::vector<int>(97, 1));
  }
}

TEST(ThreadPool, AfterAThrowNoChunkBegins) {
  ThreadPool pool(2);
  const auto body = [](int64_t i) {
    if (i == 0) throw std::bad_alloc();
  };
  constexpr int64_t kMoreThanEverEnd = int64_t{1} << 50;
  EXPECT_THROW(pool.ParallelFor(kMoreThanEverEnd, body), std::bad_alloc);
}

}  // namespace
}  // namespace floe
