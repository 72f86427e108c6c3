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
  EXPECT_EQ(curve.BestRows(0), 8);
  EXPECT_EQ(curve.BestRows(1000), 16) << "overhead makes large ones better";
  EXPECT_EQ(CostCurve().BestRows(0), 1);
  const CostCurve flat({{1, 10'000}, {2, 20'000}, {4, 40'000}});
  EXPECT_EQ(flat.BestRows(0), 2) << "nobody waits longer than 20 ms for nothing";
  EXPECT_EQ(CostCurve({{1, 30'000}, {2, 60'000}}).BestRows(0), 1);
  const CostCurve small({{32, 1000}, {64, 2000}, {128, 4000}});
  EXPECT_EQ(small.BestRows(0), 64) << "nor is memory spent for nothing";
  EXPECT_EQ(small.BestRows(1000), 128);
  EXPECT_EQ(CostCurve({{1, 30'000}, {2, 40'000}, {4, 80'000}}).BestRows(0), 2) << "for something";
}

}  // namespace
}  // namespace floe::server
