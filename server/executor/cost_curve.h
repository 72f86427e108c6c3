// CostCurve: how long a run takes by its rows, as estimated at load.
#pragma once

#include <cstdint>
#include <vector>

namespace floe::server {

// Batches of almost the best rate are as good. Larger ones than need be take no more than this.
inline constexpr double kShortRunMicros = 20'000;

// Threading: filled at load, then read by any thread.
class CostCurve {
 public:
  CostCurve() = default;
  struct Point {
    int64_t rows;
    double us;
  };
  explicit CostCurve(std::vector<Point> points) : points_(std::move(points)) {}

  // `rows` above those of the last call. A run of more rows counts as no shorter than one of fewer.
  void Add(int64_t rows, double us);
  bool empty() const { return points_.empty(); }
  const std::vector<Point>& points() const { return points_; }

  // Between points in a straight line; beyond the last as between the last two, and with one point
  // in proportion. 0 without points.
  double Micros(int64_t rows) const;

  // The batch size for work that never ends, when every run costs `overhead_us` besides: a power of
  // two or `most_rows`, which is the most. Of the sizes with nearly the most rows a second
  // (kNearlyBest) it is the largest that is small and short (kFewRows, kShortRunMicros).
  // Large ones suffer least from what else the machine does. Where there is none it is the least.
  // Not without points, unless the overhead is above 0.
  int64_t BestRows(double overhead_us, int64_t most_rows) const;
  // The rows a second of the best batches, each at `overhead_us` besides, divided by those of runs
  // of one row that cost nothing besides. 1 without points, and at least.
  double BatchGain(double overhead_us) const;

 private:
  std::vector<Point> points_;
};

}  // namespace floe::server
