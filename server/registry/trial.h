// Trial: a load that is tried somewhere else before it is done here.
#pragma once

#include <cstdint>
#include <functional>

#include "config/config.h"
#include "config/cpu_budget.h"
#include "server/registry/loader.h"
#include "server/registry/trial_process.h"

namespace floe::server {

struct Trial {
  const ModelConfig& config;
  const LoadSource& source;  // a file
  CpuShares cpu_shares;
  int64_t run_bytes = 0;      // as of PrepareOptions
  int64_t memory_limit = 0;   // of all models; 0: none
  int64_t memory_in_use = 0;  // of it, by others
  TrialLimits limits;
};

// Loads, compiles and warms up, and keeps nothing. OK: what LoadModel may load here, and only that.
// Errors as of LoadModel and RunTrialProcess. Takes as long as it takes, within the limits.
using TrialFunction = std::function<absl::StatusOr<FileIdentity>(const Trial& trial)>;

}  // namespace floe::server
