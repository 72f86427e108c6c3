#include "base/thread_pool.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace floe
