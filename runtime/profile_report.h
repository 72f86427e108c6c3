// ProfileReport: the figures of a profile, by step and by op.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "runtime/step_profile.h"

namespace floe {

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

// A run that was observed while it served. Threading: immutable.
struct RunProfile {
  int64_t rows = 0;
  TimePoint when;  // it ended
  ProfileReport report;
};

}  // namespace floe
