// What requests see of the registry: an unchanging picture, replaced as a whole.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/registry/loader.h"
#include "server/registry/registry.h"

namespace floe::server {

struct ServedTable {
  struct Version {
    int64_t version = 0;
    ServedHandle handle;
    LocalServed* served = nullptr;  // lives as long as `handle`
  };
  struct Entry {
    std::map<std::string, int64_t, std::less<>> labels;
    std::vector<Version> available;       // newest first
    std::vector<VersionStatus> statuses;  // newest first
    absl::Status last_error;              // why none is available, as far as it is known
    bool settled = false;                 // IsSettled
    bool failed = false;                  // HasFailed
  };
  std::map<std::string, Entry, std::less<>> models;
  ConfigState config;
  bool settled = false;
  bool stopping = false;

  // As ModelRegistry::Acquire and Status.
  absl::StatusOr<ServedHandle> Acquire(std::string_view name, const VersionChoice& choice) const;
  absl::StatusOr<std::vector<VersionStatus>> Status(std::string_view name,
                                                    const VersionChoice& choice) const;
  // How far the configured models are.
  struct Tally {
    size_t models = 0, available = 0;
    bool settled = false;             // all are
    std::vector<std::string> failed;  // names
  };
  Tally CountModels() const;
  // Loads and unloads, such as "model 'm' version 2 (LOADING)".
  std::string UnderWay() const;
};

}  // namespace floe::server
