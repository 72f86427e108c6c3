#include "config/monitoring_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace floe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(MonitoringConfig, SaysWhereMetricsAre) {
  const auto path = [](const std::string& text) {
    return ParseMonitoringConfig(text, "f").value_or("wrong");
  };
  EXPECT_EQ(path("prometheus_config { enable: true, path: \"/mine\" }"), "/mine");
  EXPECT_EQ(path("prometheus_config { enable: true }"), "/monitoring/prometheus/metrics");
  EXPECT_EQ(path("prometheus_config { path: \"/mine\" }"), "");
  EXPECT_EQ(path(""), "") << "as TensorFlow Serving has it";
}

TEST(MonitoringConfig, MistakesHaveTheirPlace) {
  const auto error = [](const std::string& text) {
    return std::string(ParseMonitoringConfig(text, "f").status().message());
  };
  EXPECT_THAT(error("\nprometheus_config { enable: true\n path: \"metrics\" }"),
              AllOf(HasSubstr("f:2"), HasSubstr("metrics")));
  EXPECT_THAT(error("prometheus_config { enabled: true }"),
              AllOf(HasSubstr("f:1"), HasSubstr("enable")));
  for (const char* wrong : {"/", "/a b", "/{x}", "/a?b", "/a%20"})
    EXPECT_FALSE(IsMetricsPath(wrong)) << wrong;
}

}  // namespace
}  // namespace floe
