// From a model's base_path to the file to load.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace floe::server {

struct FoundModel {
  int64_t version = 1;
  std::string file;
};

// `base_path` is a model file (version 1), a directory with one (version 1), or a directory with
// <version>/ directories, of which the highest is taken. The model file is model.floe, else
// frozen.pb, else graph.pb, else the only *.floe, *.pb or *.pbtxt. NOT_FOUND and PERMISSION_DENIED
// say when a service's sandbox may hide the path; INVALID_ARGUMENT names the directory, what was
// found in it and what was expected.
absl::StatusOr<FoundModel> FindNewestVersion(const std::string& base_path);

}  // namespace floe::server
