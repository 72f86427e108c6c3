// What changed between two pictures of the registry, for the log.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "server/registry/lifecycle.h"

namespace floe::server {

// Says in the log which versions have come, gone or failed, and which places cannot be looked
// through, each once. Threading: one thread at a time.
class LifecycleLog {
 public:
  // Of these models alone.
  void Report(const Lifecycle& lifecycle, const std::set<std::string>& models);

 private:
  struct Known {
    std::map<int64_t, VersionStatus> versions;
    std::string scan_error;
  };
  std::map<std::string, Known> known_;
};

}  // namespace floe::server
