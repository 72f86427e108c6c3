// Samples: what each model did in the last ten minutes, for small charts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "server/api/page/html.h"
#include "server/registry/registry.h"

namespace floe::server {

// Holds the same memory for each configured model, whatever it is asked. Threading: one thread.
class Samples {
 public:
  static constexpr size_t kKept = 120;
  static constexpr Duration kEvery = std::chrono::seconds(5);

  struct Point {
    float per_second = 0;  // requests that were answered, with OK or an error
    float mean_ms = 0;     // from the arrival to the answer, of those with OK
  };

  TimePoint due() const { return due_; }
  // Of all models; when it is due. Models that are gone are forgotten.
  void Take(const std::vector<ModelStats>& models, TimePoint now);
  // The oldest first; none of a model that is not known.
  std::vector<Point> Of(const std::string& model) const;

 private:
  struct Totals {
    double requests = 0, ok = 0, seconds = 0;
  };
  struct Series {
    std::map<int64_t, Totals> seen;  // by version
    std::array<Point, kKept> points{};
    size_t taken = 0;
  };
  static Totals TotalsOf(const VersionStats& version);

  std::map<std::string, Series, std::less<>> series_;
  TimePoint due_ = TimePoint::min(), last_ = TimePoint::min();
};

// <svg>: a line through the values, for which `label` says what they are.
Html Sparkline(const std::vector<float>& values, const std::string& label);

}  // namespace floe::server
