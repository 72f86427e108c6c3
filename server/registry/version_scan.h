// What lies under a model's base_path: its versions, their model files, and how long they have been
// left alone.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"

namespace floe::server {

struct FoundVersion {
  int64_t version = 1;
  std::string file;     // of the model; empty when `error` says why there is none
  absl::Status error;   // INVALID_ARGUMENT: names the directory, what it holds, what was expected
  uint64_t stamp = 0;   // of names, sizes and modification times of all files of the version
  int64_t bytes = 0;    // of these files together
  Duration quiet = {};  // since something in it changed, by the file system's clock; at least 0
  bool looked = true;   // false: one of `known`, of which only the existence was looked at
};

// Versions in descending order, at least one. `base_path` is a model file (version 1), a directory
// with one (version 1), or a directory with <version>/ directories. The model file is model.floe,
// else frozen.pb, else graph.pb, else the only *.floe, *.pb or *.pbtxt. `known`: versions whose
// files need no look. NOT_FOUND and PERMISSION_DENIED say when a service's sandbox may hide the
// path; INVALID_ARGUMENT: there is no version, with what was found and what was expected.
// Threading: any thread that may wait for a file system.
absl::StatusOr<std::vector<FoundVersion>> ScanVersions(const std::string& base_path,
                                                       const std::set<int64_t>& known = {});

}  // namespace floe::server
