// What `profile` shows: figures by step and by op, as text, JSON and a trace.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cli/step_profile.h"
#include "nlohmann/json_fwd.hpp"

namespace floe::cli {

// Figures of one run, the mean of all.
struct ProfileRow {
  std::string name;    // empty in the summary by op
  std::string within;  // names of the control flow around it: "loop", "loop > if"; else empty
  std::string op;
  std::string route;  // as `inspect --plan` shows it
  int steps = 1;
  double calls = 0;
  double us = 0;            // without nested steps
  double total_us = 0;      // with them
  double share = 0;         // us of the run's time, 0 to 1
  double estimated_us = 0;  // what us was expected to be
  double flops = 0, bytes = 0;

  double GflopsPerSecond() const { return us > 0 ? flops / us / 1e3 : 0; }
  double GigabytesPerSecond() const { return us > 0 ? bytes / us / 1e3 : 0; }
};

struct ProfileReport {
  int64_t runs = 0;
  double run_us = 0;                   // all steps and what lies between them
  double between_us = 0;               // what lies between them
  double unobserved_us = 0;            // the mean of runs that were not observed
  std::vector<ProfileRow> steps, ops;  // the longest first
};

// `profile` of at least one run. unobserved_us is the caller's to set.
ProfileReport Summarise(const StepProfile& profile);

void PrintProfile(const ProfileReport& report, std::ostream& out);
nlohmann::ordered_json ProfileJson(const ProfileReport& report);

// The calls that were kept, in the Trace Event Format of chrome://tracing and Perfetto. `title`
// names the process. An error names the file.
absl::Status WriteTrace(const StepProfile& profile, const std::string& title,
                        const std::string& path);

}  // namespace floe::cli
