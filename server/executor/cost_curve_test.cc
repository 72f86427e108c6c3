#include "server/executor/cost_curve.h"

#include <gtest/gtest.h>

namespace floe::server {
namespace {

TEST(CostCurve, StraightLinesBetweenPoints) {
  EXPECT_EQ(CostCurve().Micros(3), 0);
  EXPECT_EQ(CostCurve({{1, 5}}).Micros(3), 15);
  const CostCurve curve({{1, 10}, {4, 16}, {8, 40}});
  EXPECT_EQ(curve.Micros(1), 10);
  EXPECT_EQ(curve.Micros(3), 14);
  EXPECT_EQ(curve.Micros(4), 16);
  EXPECT_EQ(curve.Micros(6), 28);
  EXPECT_EQ(curve.Micros(10), 52);
}

TEST(CostCurve, MoreRowsAreNotShorter) {
  CostCurve curve;
  curve.Add(1, 10);
  curve.Add(2, 9);
  EXPECT_EQ(curve.Micros(2), 10);
}

TEST(CostCurve, TheBestSizeIsTheLargestShortOneNearlyAsGoodAsAny) {
  // Rows a second in thousands: 10, 20, 39.2, 40, 32 where memory gets short.
  const CostCurve curve({{1, 100}, {2, 100}, {4, 102}, {8, 200}, {16, 500}});
  EXPECT_EQ(curve.BestRows(0, 16), 8);
  EXPECT_EQ(curve.BestRows(0, 4), 4);
  EXPECT_EQ(curve.BestRows(1000, 16), 16) << "overhead makes large ones better";
  EXPECT_EQ(CostCurve({{1, 10'000}}).BestRows(0, 4), 2)
      << "nobody waits longer than 20 ms for nothing";
  EXPECT_EQ(CostCurve({{1, 30'000}}).BestRows(0, 2), 1);
  const CostCurve small({{32, 1000}, {64, 2000}});
  EXPECT_EQ(small.BestRows(0, 128), 64) << "nor is memory spent for nothing";
  EXPECT_EQ(small.BestRows(1000, 128), 128);
  EXPECT_EQ(CostCurve({{1, 30'000}, {2, 40'000}, {4, 80'000}}).BestRows(0, 4), 2)
      << "for something";
}

TEST(CostCurve, SizesBetweenAndBeyondPointsAreChosenToo) {
  // 10 us a run and 1 us a row.
  const CostCurve curve({{1, 11}, {8, 18}});
  EXPECT_EQ(curve.BestRows(0, 1024), 256) << "the first within 6 % of the largest";
  EXPECT_EQ(curve.BestRows(80, 100), 100) << "which need not be a power of two";
  EXPECT_EQ(curve.BestRows(80, 1024), 1024);
}

}  // namespace
}  // namespace floe::server
