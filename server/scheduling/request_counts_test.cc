#include "server/scheduling/request_counts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace floe::server {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Inference AskedBy(Door door) {
  Inference asked;
  asked.door = door;
  return asked;
}

TEST(RequestCountsTest, CountsBySignatureAndDoor) {
  RequestCounts counts;
  EXPECT_THAT(counts.Read(), IsEmpty());
  const Signature signature{};
  Inference known = AskedBy(Door::kHttpPredict);
  known.signature = &signature;
  counts.Of(known).Count(absl::StatusCode::kOk);
  counts.Of(known).AddTimes(std::chrono::milliseconds(20), std::chrono::milliseconds(15));
  RequestCounts::Cell& cell = counts.Of(AskedBy(Door::kHttpPredict));
  cell.Count(absl::StatusCode::kNotFound);
  cell.Count(absl::StatusCode::kOk);
  cell.Count(absl::StatusCode::kOk, -1);
  counts.Of(AskedBy(Door::kPredict)).Count(absl::StatusCode::kOk);
  EXPECT_EQ(&counts.Of(AskedBy(Door::kHttpPredict)), &cell);

  const std::vector<RequestCount> read = counts.Read();
  ASSERT_EQ(read.size(), 3u);
  EXPECT_EQ(read[0].door, Door::kPredict);
  EXPECT_EQ(read[0].by_code[0], 1u);
  uint64_t timed = 0, ok = 0, not_found = 0;
  for (const RequestCount& count : {read[1], read[2]}) {
    EXPECT_EQ(count.door, Door::kHttpPredict);
    timed += count.seconds.count();
    ok += count.by_code[0];
    not_found += count.by_code[static_cast<size_t>(absl::StatusCode::kNotFound)];
    EXPECT_EQ(count.seconds.sum(), 0.02 * static_cast<double>(count.seconds.count()));
    EXPECT_EQ(count.run_seconds.sum(), 0.015 * static_cast<double>(count.seconds.count()));
  }
  EXPECT_EQ(timed, 1u);
  EXPECT_EQ(ok, 1u);
  EXPECT_EQ(not_found, 1u);
}

TEST(RequestCountsTest, ThreadsMissNothing) {
  constexpr int kThreads = 12, kEach = 1000;
  RequestCounts counts;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&counts, i] {
      for (int j = 0; j < kEach; ++j) {
        RequestCounts::Cell& cell =
            counts.Of(AskedBy(i % 2 == 0 ? Door::kPredict : Door::kRegress));
        cell.Count(absl::StatusCode::kOk);
        cell.AddTimes(std::chrono::microseconds(75), std::chrono::microseconds(10));
      }
    });
  for (std::thread& thread : threads) thread.join();
  const std::vector<RequestCount> read = counts.Read();
  ASSERT_EQ(read.size(), 2u);
  for (const RequestCount& count : read) {
    EXPECT_EQ(count.by_code[0], uint64_t{kThreads / 2 * kEach});
    EXPECT_EQ(count.seconds.Between({0.00005, 0.0001}).counts()[1], uint64_t{kThreads / 2 * kEach});
  }
}

TEST(TimeBoundsTest, HoldAllThatAreShown) {
  EXPECT_TRUE(std::is_sorted(kTimeBounds.begin(), kTimeBounds.end()));
  for (const double bound : kSecondsBounds) {
    EXPECT_EQ(kTimeBounds[BucketOf(kTimeBounds, bound)], bound);
    EXPECT_EQ(kWaitBounds[BucketOf(kWaitBounds, bound)], bound);
  }
  for (const double bound : kTfServingSeconds)
    EXPECT_EQ(kTimeBounds[BucketOf(kTimeBounds, bound)], bound);
  for (const double bound : kTfServingQueueSeconds)
    EXPECT_EQ(kWaitBounds[BucketOf(kWaitBounds, bound)], bound);
  // As its own numbers to six digits.
  for (const auto& [bound, text] :
       {std::pair(kTfServingMicros[2], "32.4"), std::pair(kTfServingMicros[11], "6426.84"),
        std::pair(kTfServingMicros[32], "1.47476e+09"),
        std::pair(kTfServingQueueMicros[4], "207.36"),
        std::pair(kTfServingQueueMicros[51], "1.09205e+06")}) {
    std::ostringstream written;
    written << bound;
    EXPECT_EQ(written.str(), text);
    EXPECT_EQ(bound, std::stod(text));
  }
}

}  // namespace
}  // namespace floe::server
