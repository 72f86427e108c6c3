// Loading one version of a configured model: import, compile, warm up, put a queue in front.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/file_identity.h"
#include "base/memory_budget.h"
#include "config/config.h"
#include "config/cpu_budget.h"
#include "server/loading/load_watch.h"
#include "server/loading/local_served.h"
#include "server/loading/model_devices.h"
#include "server/loading/prepare.h"
#include "server/loading/trial_process.h"

namespace floe::server {

struct LoadOptions {
  CompileOptions compile;
  ReplyFormat default_reply = ReplyFormat::kTyped;
  PrepareOptions prepare;
  // Where models may be computed besides the CPU; null: nowhere.
  std::shared_ptr<ModelDevices> devices;
  std::shared_ptr<EndThreads> end_threads;  // of all versions together; null: each has its own
  LoadWatch::Load* progress = nullptr;      // gets the stages; may be null
};

// What to load. `file` empty: the graph is in `bytes`.
struct LoadSource {
  int64_t version = 1;
  std::string file;
  std::string bytes;
  std::optional<FileIdentity> identity = {};  // of the file that is meant; none: whatever is there
};

// Takes as long as it takes; never on a thread that serves. Errors as of import and compilation;
// RESOURCE_EXHAUSTED when memory is short, or when `memory` has not enough left. That is asked by
// the file's size before the file is read, then for all that is allocated, and by what plans need
// before anything is run. What is not used in the end, or by a load that failed, is given back to
// the system.
absl::StatusOr<std::shared_ptr<LocalServed>> LoadModel(const ModelConfig& config,
                                                       const LoadSource& source,
                                                       const LoadOptions& options,
                                                       const MemoryBudget& memory);

// What a compiled model will need to run, before anything of it is allocated. Bytes of the largest
// arena among its signatures for runs of `rows` rows, with unknown non-batch dimensions taken as 1.
// Memory of values whose size only a run settles is not known here.
int64_t ArenaBytes(const Model& model, int64_t rows);

// How a registry loads.
using LoadFunction = std::function<absl::StatusOr<std::shared_ptr<LocalServed>>(
    const ModelConfig& config, const LoadSource& source)>;

// A load that is tried somewhere else before it is done here.
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
