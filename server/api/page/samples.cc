#include "server/api/page/samples.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_format.h"

namespace floe::server {

Samples::Totals Samples::TotalsOf(const VersionStats& version) {
  Totals totals;
  if (!version.scheduler.has_value()) return totals;
  for (const RequestCount& count : version.scheduler->requests) {
    for (const uint64_t ended : count.by_code) totals.requests += static_cast<double>(ended);
    totals.ok += static_cast<double>(count.seconds.count());
    totals.seconds += count.seconds.sum();
  }
  return totals;
}

void Samples::Take(const std::vector<ModelStats>& models, TimePoint now) {
  const double passed = last_ == TimePoint::min() ? 0 : Seconds(now - last_);
  std::set<std::string_view> names;
  for (const ModelStats& model : models) {
    names.insert(model.name);
    const auto [found, added] = series_.try_emplace(model.name);
    Series& series = found->second;
    Totals more;
    std::map<int64_t, Totals> seen;
    for (const VersionStats& version : model.versions) {
      const Totals totals = TotalsOf(version);
      seen[version.status.version] = totals;
      const auto before = series.seen.find(version.status.version);
      // What a version did before it was first seen is of another time.
      if (before == series.seen.end()) continue;
      more.requests += std::max(0.0, totals.requests - before->second.requests);
      more.ok += std::max(0.0, totals.ok - before->second.ok);
      more.seconds += std::max(0.0, totals.seconds - before->second.seconds);
    }
    series.seen = std::move(seen);
    if (passed <= 0 || added) continue;
    series.points[series.taken++ % kKept] = {
        static_cast<float>(more.requests / passed),
        static_cast<float>(more.ok > 0 ? 1000 * more.seconds / more.ok : 0)};
  }
  std::erase_if(series_, [&](const auto& one) { return names.count(one.first) == 0; });
  last_ = now;
  due_ = now + kEvery;
}

std::vector<Samples::Point> Samples::Of(const std::string& model) const {
  std::vector<Point> points;
  const auto found = series_.find(model);
  if (found == series_.end()) return points;
  const Series& series = found->second;
  for (size_t i = series.taken - std::min(series.taken, kKept); i < series.taken; ++i)
    points.push_back(series.points[i % kKept]);
  return points;
}

Html Sparkline(const std::vector<float>& values, const std::string& label) {
  constexpr float kHeight = 24;
  float most = 0;
  for (const float value : values) most = std::max(most, value);
  std::string points;
  for (size_t i = 0; i < values.size(); ++i) {
    const float y = most > 0 ? kHeight - 1 - (kHeight - 2) * values[i] / most : kHeight - 1;
    absl::StrAppendFormat(&points, "%s%d,%.3g", i == 0 ? "" : " ",
                          Samples::kKept - values.size() + i, y);
  }
  Html html;
  html.Add(
      "<svg class=\"spark\" viewBox=\"0 0 120 24\" preserveAspectRatio=\"none\" role=\"img\" "
      "aria-label=\"");
  html.Text(label).Add("\"><polyline points=\"").Text(points).Add("\"/></svg>");
  return html;
}

}  // namespace floe::server
