// What runs take by their rows, and which batch is best by that.
#include "server/executor/cost_curve.h"

#include <algorithm>

namespace floe::server {
namespace {

constexpr double kNearlyBest = 0.94;
constexpr int64_t kFewRows = 64;

}  // namespace

void CostCurve::Add(int64_t rows, double us) {
  points_.push_back({rows, points_.empty() ? us : std::max(us, points_.back().us)});
}

double CostCurve::Micros(int64_t rows) const {
  if (points_.empty()) return 0;
  const auto at = static_cast<double>(rows);
  const auto above = std::find_if(points_.begin(), points_.end(),
                                  [rows](const Point& point) { return point.rows >= rows; });
  if (above == points_.begin()) return above->us;
  if (points_.size() == 1) return points_[0].us * at / static_cast<double>(points_[0].rows);
  const auto high = above == points_.end() ? above - 1 : above;
  const Point &a = *(high - 1), &b = *high;
  return a.us +
         (b.us - a.us) * static_cast<double>(rows - a.rows) / static_cast<double>(b.rows - a.rows);
}

double CostCurve::BatchGain(double overhead_us) const {
  double most = 0;
  for (const Point& point : points_)
    most = std::max(most, static_cast<double>(point.rows) / (point.us + overhead_us));
  return std::max(1.0, most * Micros(1));
}

int64_t CostCurve::BestRows(double overhead_us, int64_t most_rows) const {
  std::vector<Point> sizes;
  for (int64_t rows = 1; rows < most_rows; rows *= 2) sizes.push_back({rows, Micros(rows)});
  sizes.push_back({most_rows, Micros(most_rows)});
  const auto rate = [overhead_us](const Point& size) {
    return static_cast<double>(size.rows) / (size.us + overhead_us);
  };
  double most = 0;
  for (const Point& size : sizes) most = std::max(most, rate(size));
  int64_t best = 0;
  for (const Point& size : sizes)
    if (rate(size) >= kNearlyBest * most &&
        (best == 0 || (size.us <= kShortRunMicros && size.rows <= kFewRows)))
      best = size.rows;
  return best;
}

}  // namespace floe::server
