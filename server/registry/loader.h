// Loading one version of a configured model: import, compile, warm up, put a queue in front.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/file_identity.h"
#include "base/memory_budget.h"
#include "config/config.h"
#include "server/registry/load_watch.h"
#include "server/registry/served_table.h"
#include "server/scheduling/prepare.h"

namespace floe::server {

struct LoadOptions {
  CompileOptions compile;
  ReplyFormat default_reply = ReplyFormat::kTyped;
  PrepareOptions prepare;
  LoadWatch::Load* progress = nullptr;  // gets the stages; may be null
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

// How a registry loads.
using LoadFunction = std::function<absl::StatusOr<std::shared_ptr<LocalServed>>(
    const ModelConfig& config, const LoadSource& source)>;

}  // namespace floe::server
