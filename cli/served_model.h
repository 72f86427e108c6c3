// A model that a server serves, to be loaded in this process as the server loads it.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "cli/rpc.h"
#include "config/config.h"

namespace floe::cli {

struct ServedModel {
  std::string file;  // of the newest version that is available, as the server names it
  ModelConfig config;
};

// Errors of the calls; NOT_FOUND: no version is available.
absl::StatusOr<ServedModel> FindServed(const Target& target, const std::string& model);

}  // namespace floe::cli
