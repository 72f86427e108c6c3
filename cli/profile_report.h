// What `profile` shows: figures by step and by op, as text, JSON and a trace.
#pragma once

#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "nlohmann/json_fwd.hpp"
#include "runtime/profile_report.h"

namespace floe::cli {

void PrintProfile(const ProfileReport& report, std::ostream& out);
nlohmann::ordered_json ProfileJson(const ProfileReport& report);

// The calls that were kept, in the Trace Event Format of chrome://tracing and Perfetto. `title`
// names the process. An error names the file.
absl::Status WriteTrace(const StepProfile& profile, const std::string& title,
                        const std::string& path);

}  // namespace floe::cli
