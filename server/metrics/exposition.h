// Exposition: metrics as the text that Prometheus scrapes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "base/histogram.h"

namespace floe::server {

enum class MetricType : uint8_t { kCounter, kGauge, kHistogram };

// The formats: Prometheus' text 0.0.4, and OpenMetrics 1.0, which differ in the names of counters'
// families and in the last line.
enum class MetricFormat : uint8_t { kPrometheus, kOpenMetrics };

// What an Accept field asks for: OpenMetrics where it is named, else Prometheus' text.
MetricFormat MetricFormatOf(std::string_view accept);
std::string_view ContentTypeOf(MetricFormat format);

using MetricLabel = std::pair<std::string_view, std::string_view>;
using MetricLabels = std::vector<MetricLabel>;

// Writes family after family; each family's samples follow it. A family without samples is left
// out. Sources: Prometheus' "Exposition formats" and the OpenMetrics 1.0 specification.
// Threading: one thread.
class Exposition {
 public:
  explicit Exposition(MetricFormat format) : format_(format) {}

  // `help` is one sentence. The strings outlive the family's samples. OpenMetrics knows counters
  // by "_total" at their end; others are of type unknown there.
  void Family(std::string_view name, MetricType type, std::string_view help);
  // Of the last family: a counter or a gauge.
  void Sample(const MetricLabels& labels, double value);
  void Sample(const MetricLabels& labels, uint64_t value);
  // Of the last family: a histogram.
  void Sample(const MetricLabels& labels, const Histogram& histogram);

  // All that was written, ended as the format wants it. Nothing may follow.
  std::string Finish() &&;

 private:
  void Head();
  void SetLabels(const MetricLabels& labels);
  void Line(std::string_view suffix, std::string_view bound);

  const MetricFormat format_;
  std::string_view name_, help_;
  MetricType type_ = MetricType::kGauge;
  bool has_head_ = false;
  std::string labels_;  // of the sample: `model="m",version="1"`
  std::string text_;
};

}  // namespace floe::server
