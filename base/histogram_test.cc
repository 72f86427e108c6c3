#include "base/histogram.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace floe {
namespace {

using testing::ElementsAre;

TEST(HistogramTest, CountsUpToEachBoundAndAboveAll) {
  static constexpr double kBounds[] = {1, 2, 4};
  Histogram histogram(kBounds);
  EXPECT_THAT(histogram.counts(), ElementsAre(0, 0, 0, 0));
  for (const double value : {0.0, 1.0, 1.5, 2.0, 3.0, 4.0, 4.5, 100.0}) histogram.Add(value);
  EXPECT_THAT(histogram.counts(), ElementsAre(2, 2, 2, 2));
  EXPECT_EQ(histogram.sum(), 116);
  EXPECT_EQ(histogram.count(), 8u);
}

TEST(HistogramTest, IsReadBetweenFewerBoundsAndInAnotherUnit) {
  static constexpr double kBounds[] = {0.5, 1, 2, 4}, kFewer[] = {1, 4}, kMillis[] = {1000, 4000};
  Histogram histogram(kBounds);
  for (const double value : {0.25, 1.0, 1.5, 3.0, 5.0}) histogram.Add(value);
  const Histogram fewer = histogram.Between(kFewer);
  EXPECT_THAT(fewer.counts(), ElementsAre(2, 2, 1));
  EXPECT_EQ(fewer.sum(), 10.75);
  const Histogram millis = fewer.InUnit(kMillis, 1000);
  EXPECT_THAT(millis.bounds(), ElementsAre(1000, 4000));
  EXPECT_THAT(millis.counts(), ElementsAre(2, 2, 1));
  EXPECT_EQ(millis.sum(), 10750);
}

TEST(HistogramTest, AddsWhatAnotherHas) {
  static constexpr double kBounds[] = {1};
  Histogram all(kBounds), part(kBounds);
  all.Add(0.5);
  part.Add(3);
  all.Add(part);
  all.AddBucket(0, 2);
  all.AddSum(1);
  EXPECT_THAT(all.counts(), ElementsAre(3, 1));
  EXPECT_EQ(all.sum(), 4.5);
}

}  // namespace
}  // namespace floe
