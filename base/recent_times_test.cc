#include "base/recent_times.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace floe {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

const TimePoint kStart = TimePoint() + std::chrono::hours(1);

double Micros(Duration time) { return std::chrono::duration<double, std::micro>(time).count(); }

TEST(RecentTimes, QuantilesAreWithinFivePercent) {
  RecentTimes times;
  std::mt19937 random(1);
  std::vector<double> micros;
  for (int i = 0; i < 10000; ++i) {
    micros.push_back(std::exp(std::uniform_real_distribution<double>(1, 15)(random)));
    times.Add(std::chrono::duration_cast<Duration>(
                  std::chrono::duration<double, std::micro>(micros.back())),
              kStart);
  }
  std::sort(micros.begin(), micros.end());
  for (const double part : {0.01, 0.5, 0.9, 0.99}) {
    const double want = micros[static_cast<size_t>(part * 10000) - 1];
    EXPECT_NEAR(Micros(times.Quantile(part, kStart)), want, 0.05 * want) << part;
  }
}

TEST(RecentTimes, OldOnesAreForgotten) {
  RecentTimes times;
  EXPECT_EQ(times.Quantile(0.5, kStart), Duration::zero());
  times.Add(milliseconds(1), kStart);
  times.Add(milliseconds(100), kStart + seconds(70));
  EXPECT_EQ(times.Count(kStart + seconds(70)), 2u);
  EXPECT_EQ(times.Count(kStart + seconds(135)), 1u);
  EXPECT_NEAR(Micros(times.Quantile(0.5, kStart + seconds(135))), 100'000, 5000);
  EXPECT_EQ(times.Count(kStart + seconds(200)), 0u);
  EXPECT_EQ(times.Quantile(0.99, kStart + seconds(200)), Duration::zero());
}

TEST(RecentTimes, TheShortestAndTheLongestHaveABucket) {
  RecentTimes times;
  times.Add(Duration::zero(), kStart);
  EXPECT_LE(times.Quantile(1, kStart), microseconds(2));
  times.Add(std::chrono::hours(1000), kStart);
  EXPECT_GE(times.Quantile(1, kStart), std::chrono::minutes(60));
}

}  // namespace
}  // namespace floe
