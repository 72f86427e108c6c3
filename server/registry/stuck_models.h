// StuckModels: which models make no progress although requests wait.
#pragma once

#include <set>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "server/registry/served_table.h"

namespace floe::server {

// Threading: any thread.
class StuckModels {
 public:
  // Looks at all that serve, logs what is new, and returns the names of those that are stuck.
  std::set<std::string> Find(const ServedTable& table, TimePoint now);

 private:
  Mutex mutex_;
  std::set<std::string> known_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace floe::server
