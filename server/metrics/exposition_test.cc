#include "server/metrics/exposition.h"

#include <gtest/gtest.h>

#include <limits>

namespace floe::server {
namespace {

TEST(ExpositionTest, CountersAndGauges) {
  Exposition text(MetricFormat::kPrometheus);
  text.Family("floe_requests_total", MetricType::kCounter, "Requests.");
  text.Sample({{"model", "a\"b\\c\nd"}, {"code", "OK"}}, uint64_t{18446744073709551615u});
  text.Family("floe_memory_bytes", MetricType::kGauge, "Bytes.");
  for (const double value : {0.1, 0.0001, 1e300}) text.Sample({}, value);
  text.Sample({}, std::numeric_limits<double>::infinity());
  text.Sample({}, std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(std::move(text).Finish(),
            "# HELP floe_requests_total Requests.\n"
            "# TYPE floe_requests_total counter\n"
            "floe_requests_total{model=\"a\\\"b\\\\c\\nd\",code=\"OK\"} 18446744073709551615\n"
            "# HELP floe_memory_bytes Bytes.\n"
            "# TYPE floe_memory_bytes gauge\n"
            "floe_memory_bytes 0.1\n"
            "floe_memory_bytes 0.0001\n"
            "floe_memory_bytes 1e+300\n"
            "floe_memory_bytes +Inf\n"
            "floe_memory_bytes NaN\n");
}

TEST(ExpositionTest, HistogramsAreCumulative) {
  static constexpr double kBounds[] = {0.5, 1, 2.5};
  Histogram histogram(kBounds);
  for (const double value : {0.25, 1.0, 1.0, 9.0}) histogram.Add(value);
  Exposition text(MetricFormat::kPrometheus);
  text.Family("t_seconds", MetricType::kHistogram, "Times.");
  text.Sample({{"m", "x"}}, histogram);
  EXPECT_EQ(std::move(text).Finish(),
            "# HELP t_seconds Times.\n"
            "# TYPE t_seconds histogram\n"
            "t_seconds_bucket{m=\"x\",le=\"0.5\"} 1\n"
            "t_seconds_bucket{m=\"x\",le=\"1\"} 3\n"
            "t_seconds_bucket{m=\"x\",le=\"2.5\"} 3\n"
            "t_seconds_bucket{m=\"x\",le=\"+Inf\"} 4\n"
            "t_seconds_sum{m=\"x\"} 11.25\n"
            "t_seconds_count{m=\"x\"} 4\n");
}

TEST(ExpositionTest, OpenMetricsNamesFamiliesOfCountersWithoutTotalAndEnds) {
  static constexpr double kBounds[] = {1};
  Exposition text(MetricFormat::kOpenMetrics);
  text.Family("floe_requests_total", MetricType::kCounter, "Requests.");
  text.Sample({}, uint64_t{3});
  text.Family("rows", MetricType::kHistogram, "Rows.");
  text.Sample({}, Histogram(kBounds));
  EXPECT_EQ(std::move(text).Finish(),
            "# HELP floe_requests Requests.\n"
            "# TYPE floe_requests counter\n"
            "floe_requests_total 3\n"
            "# HELP rows Rows.\n"
            "# TYPE rows histogram\n"
            "rows_bucket{le=\"1.0\"} 0\n"
            "rows_bucket{le=\"+Inf\"} 0\n"
            "rows_sum 0\n"
            "rows_count 0\n"
            "# EOF\n");
}

TEST(ExpositionTest, FamiliesWithoutSamplesAreLeftOut) {
  Exposition text(MetricFormat::kPrometheus);
  text.Family("none_total", MetricType::kCounter, "None.");
  text.Family("one", MetricType::kGauge, "Uses \\ and \n.");
  text.Sample({}, uint64_t{1});
  EXPECT_EQ(std::move(text).Finish(), "# HELP one Uses \\\\ and \\n.\n# TYPE one gauge\none 1\n");
}

TEST(ExpositionTest, FormatFollowsAccept) {
  EXPECT_EQ(MetricFormatOf(""), MetricFormat::kPrometheus);
  EXPECT_EQ(MetricFormatOf("text/plain;version=0.0.4;q=1,*/*;q=0.1"), MetricFormat::kPrometheus);
  EXPECT_EQ(MetricFormatOf("application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.1"),
            MetricFormat::kOpenMetrics);
}

}  // namespace
}  // namespace floe::server
