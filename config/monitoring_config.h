// TensorFlow Serving's --monitoring_config_file: a text proto that says where metrics are.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace floe {

// server.metrics_path as the text says it; "": they are off. INVALID_ARGUMENT has one line per
// mistake, with file and line.
absl::StatusOr<std::string> ParseMonitoringConfig(const std::string& text, const std::string& file);

// A path of HTTP, or "".
bool IsMetricsPath(const std::string& text);

}  // namespace floe
