#include "cli/latency_histogram.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace floe::cli {
namespace {

using Nanoseconds = std::chrono::nanoseconds;

constexpr int kPermilles[] = {0, 1, 250, 500, 900, 990, 999, 1000};

// The least value with `permille` of 1000 at or below it, from all of them in order.
int64_t Exact(const std::vector<int64_t>& sorted, int permille) {
  const size_t rank = std::max<size_t>((sorted.size() * permille + 999) / 1000, 1);
  return sorted[rank - 1];
}

void ExpectAsSorted(std::vector<int64_t> values) {
  LatencyHistogram histogram;
  for (const int64_t value : values) histogram.Record(Nanoseconds(value));
  std::sort(values.begin(), values.end());
  for (const int permille : kPermilles) {
    const int64_t exact = Exact(values, permille), told = histogram.Percentile(permille).count();
    EXPECT_GE(told, exact) << permille << " of " << values.size();
    EXPECT_LE(told - exact, exact / LatencyHistogram::kParts) << permille << " of " << exact;
  }
  EXPECT_EQ(histogram.count(), static_cast<int64_t>(values.size()));
  EXPECT_EQ(histogram.Min().count(), values.front());
  EXPECT_EQ(histogram.Max().count(), values.back());
  EXPECT_EQ(histogram.Percentile(1000).count(), values.back());
}

TEST(LatencyHistogram, PercentilesAreThoseOfSortedValues) {
  std::mt19937_64 random(1);
  for (const int count : {1, 2, 3, 7, 100, 999, 1000, 1001, 20000}) {
    for (const double octaves : {3.0, 10.0, 20.0, 40.0}) {
      std::uniform_real_distribution<double> exponent(0, octaves);
      std::vector<int64_t> values(count);
      for (int64_t& value : values) value = std::llround(std::exp2(exponent(random)));
      ExpectAsSorted(values);
    }
  }
}

TEST(LatencyHistogram, EveryValueNearAPowerOfTwoHasItsBucket) {
  for (int power = 0; power <= 40; ++power) {
    for (int64_t around = -3; around <= 3; ++around) {
      const int64_t value = (int64_t{1} << power) + around;
      if (value >= 0) ExpectAsSorted({value, value, 2 * value + 5});
    }
  }
}

TEST(LatencyHistogram, SmallValuesAreExact) {
  std::vector<int64_t> values(2 * LatencyHistogram::kParts);
  std::iota(values.begin(), values.end(), 0);
  LatencyHistogram histogram;
  for (const int64_t value : values) histogram.Record(Nanoseconds(value));
  for (const int permille : kPermilles)
    EXPECT_EQ(histogram.Percentile(permille).count(), Exact(values, permille)) << permille;
}

TEST(LatencyHistogram, WhatFitsNoBucketIsCountedAtTheEnds) {
  LatencyHistogram histogram;
  EXPECT_EQ(histogram.Percentile(500).count(), 0);
  EXPECT_EQ(histogram.Min().count(), 0);
  EXPECT_EQ(histogram.Mean().count(), 0);
  histogram.Record(Nanoseconds(-5));
  histogram.Record(std::chrono::hours(10));
  EXPECT_EQ(histogram.count(), 2);
  EXPECT_EQ(histogram.Percentile(500).count(), 0);
  EXPECT_EQ(histogram.Max(), std::chrono::hours(10));
  EXPECT_EQ(histogram.Mean(), std::chrono::hours(5));
}

TEST(LatencyHistogram, SumsAreAsIfOneHadCountedAll) {
  LatencyHistogram all, one, other;
  for (int64_t value = 1; value < 100'000'000; value = value * 11 / 10 + 1) {
    all.Record(Nanoseconds(value));
    (value % 3 == 0 ? one : other).Record(Nanoseconds(value));
  }
  LatencyHistogram sum;
  sum.Add(LatencyHistogram());
  sum.Add(one);
  sum.Add(other);
  EXPECT_EQ(sum.count(), all.count());
  EXPECT_EQ(sum.Min(), all.Min());
  EXPECT_EQ(sum.Max(), all.Max());
  EXPECT_EQ(sum.Mean(), all.Mean());
  for (const int permille : kPermilles)
    EXPECT_EQ(sum.Percentile(permille), all.Percentile(permille)) << permille;
}

}  // namespace
}  // namespace floe::cli
