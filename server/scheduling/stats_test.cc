#include "server/scheduling/stats.h"

#include <gtest/gtest.h>

namespace floe::server {
namespace {

TEST(BatchCounts, AddAddsEveryNumber) {
  BatchCounts sum{1, 2, 3, 4, {}};
  sum.closed[0] = 5;
  BatchCounts more{10, 20, 30, 40, {}};
  more.closed[0] = 50;
  more.closed[kBatchCloses - 1] = 60;
  sum.Add(more);
  EXPECT_EQ(sum.batches, 11u);
  EXPECT_EQ(sum.requests, 22u);
  EXPECT_EQ(sum.rows, 33u);
  EXPECT_EQ(sum.padded_rows, 44u);
  EXPECT_EQ(sum.closed[0], 55u);
  EXPECT_EQ(sum.closed[kBatchCloses - 1], 60u);
}

TEST(Summary, SaysWhatHappened) {
  SchedulerStats stats;
  EXPECT_EQ(Summary(stats), "") << "nothing was asked";
  stats[Outcome::kRefusedLate] = 3;
  EXPECT_EQ(Summary(stats), "3 refused late");
  stats[Outcome::kAnswered] = 12;
  stats.batches.batches = 4;
  stats.batches.requests = 12;
  stats.batches.rows = 14;
  stats.batches.closed[static_cast<size_t>(BatchClose::kFull)] = 1;
  stats.batches.closed[static_cast<size_t>(BatchClose::kIdle)] = 3;
  EXPECT_EQ(
      Summary(stats),
      "12 answered, 3 refused late; 4 batches of 3.0 requests, 3.5 rows; closed: 1 full, 3 idle");
  stats.batches.padded_rows = 2;
  stats.inline_runs = 1;
  EXPECT_EQ(Summary(stats),
            "12 answered, 3 refused late; 4 batches of 3.0 requests, 3.5 rows, 2 padding rows, 1 "
            "inline; closed: 1 full, 3 idle");
}

// Work that goes on, however slowly, is not stuck; work that stands still for long is.
TEST(IsStuck, AfterTenSecondsOrTwentySlowestRuns) {
  const TimePoint start = TimePoint() + std::chrono::hours(1);
  SchedulerProgress progress;
  EXPECT_FALSE(IsStuck(progress, start + std::chrono::hours(1))) << "nothing to do";
  progress.waiting_since = start;
  EXPECT_FALSE(IsStuck(progress, start + std::chrono::seconds(10)));
  EXPECT_TRUE(IsStuck(progress, start + std::chrono::milliseconds(10001)));
  progress.slowest = std::chrono::seconds(1);
  EXPECT_FALSE(IsStuck(progress, start + std::chrono::seconds(20)));
  EXPECT_TRUE(IsStuck(progress, start + std::chrono::milliseconds(20001)));
  progress.runs = {{.started = start + std::chrono::seconds(1), .batches = 2}};
  EXPECT_FALSE(IsStuck(progress, start + std::chrono::seconds(40)));
  progress.runs.clear();
  progress.last_finished = start + std::chrono::seconds(15);
  EXPECT_FALSE(IsStuck(progress, start + std::chrono::seconds(35)));
}

TEST(IsStuck, OneWorkerOfTwoIsNotAllOfThem) {
  const TimePoint start = TimePoint() + std::chrono::hours(1);
  const TimePoint later = start + std::chrono::hours(1);
  SchedulerProgress progress;
  progress.workers = 2;
  progress.runs = {{.slot = 0, .started = start}};
  EXPECT_TRUE(IsStuck(progress, progress.runs[0], later));
  EXPECT_FALSE(IsStuck(progress, later)) << "the other is idle";
  progress.runs.push_back({.slot = 1, .started = later - std::chrono::seconds(1)});
  EXPECT_FALSE(IsStuck(progress, progress.runs[1], later));
  EXPECT_FALSE(IsStuck(progress, later)) << "the other goes on";
  EXPECT_TRUE(IsStuck(progress, later + std::chrono::seconds(10))) << "the other does not either";
}

TEST(RunsByRows, TheFirstNumbersOfRowsHaveTheirOwnCount) {
  RunsByRows runs;
  for (size_t rows = RunsByRows::kMost; rows >= 1; --rows)
    for (size_t i = 0; i < rows; ++i) runs.Add(static_cast<int64_t>(rows), 0.5);
  runs.Add(1000, 1);
  const std::vector<RunsByRows::Runs> all = runs.Read();
  ASSERT_EQ(all.size(), RunsByRows::kMost);
  EXPECT_EQ(all[2].rows, 3);
  EXPECT_EQ(all[2].count, 3u);
  EXPECT_EQ(all[2].seconds, 1.5);
  EXPECT_EQ(all.back().rows, static_cast<int64_t>(RunsByRows::kMost));
}

}  // namespace
}  // namespace floe::server
