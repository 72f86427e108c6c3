#include "server/api/page/samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace floe::server {
namespace {

using ::testing::HasSubstr;

const TimePoint kSamplesStart = TimePoint() + std::chrono::hours(1);

// A version that answered so many with OK, each in `seconds`, and failed the others.
VersionStats Answered(int64_t number, int ok, int failed, double seconds) {
  VersionStats version{{number, VersionState::kAvailable, {}}};
  RequestCount& count = version.scheduler.emplace().requests.emplace_back();
  count.by_code[0] = static_cast<uint64_t>(ok);
  count.by_code[13] = static_cast<uint64_t>(failed);
  for (int i = 0; i < ok; ++i) count.seconds.Add(seconds);
  return version;
}

TEST(Samples, AreWhatHappenedBetweenTwo) {
  Samples samples;
  samples.Take({{"m", {Answered(1, 1000, 0, 1)}}}, kSamplesStart);
  EXPECT_EQ(samples.due(), kSamplesStart + Samples::kEvery);
  EXPECT_TRUE(samples.Of("m").empty()) << "what was before the first is of no known time";
  // Five seconds later; a version that is new counts from then on.
  samples.Take({{"m", {Answered(2, 500, 0, 1), Answered(1, 1010, 5, 1)}}},
               kSamplesStart + Samples::kEvery);
  ASSERT_EQ(samples.Of("m").size(), 1u);
  EXPECT_FLOAT_EQ(samples.Of("m")[0].per_second, 3);
  EXPECT_NEAR(samples.Of("m")[0].mean_ms, 1000, 1e-3);
  // Version 1 has gone, with its counts.
  samples.Take({{"m", {Answered(2, 500, 0, 1)}}}, kSamplesStart + 2 * Samples::kEvery);
  EXPECT_EQ(samples.Of("m")[1].per_second, 0);
  EXPECT_EQ(samples.Of("m")[1].mean_ms, 0);
}

TEST(Samples, KeepTheLastOfConfiguredModels) {
  Samples samples;
  const int many = Samples::kKept + 10;
  for (int i = 0; i <= many; ++i)
    samples.Take({{"m", {Answered(1, 5 * i * (i + 1) / 2, 0, 1)}}},
                 kSamplesStart + i * Samples::kEvery);
  const auto points = samples.Of("m");
  ASSERT_EQ(points.size(), Samples::kKept);
  EXPECT_FLOAT_EQ(points.back().per_second, many);
  EXPECT_FLOAT_EQ(points.front().per_second, many - Samples::kKept + 1);
  samples.Take({}, kSamplesStart + std::chrono::hours(2));
  EXPECT_TRUE(samples.Of("m").empty());
}

TEST(Samples, ALineIsAsHighAsTheLargestValue) {
  const std::string svg = Sparkline({0, 2, 4}, "a \"label\"").text();
  EXPECT_THAT(svg, HasSubstr("points=\"117,23 118,12 119,1\""));
  EXPECT_THAT(svg, HasSubstr("aria-label=\"a &quot;label&quot;\""));
  EXPECT_THAT(Sparkline({0}, "x").text(), HasSubstr("points=\"119,23\""));
  EXPECT_THAT(Sparkline({}, "x").text(), HasSubstr("points=\"\""));
}

}  // namespace
}  // namespace floe::server
