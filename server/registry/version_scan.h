// What lies under a model's base_path: its versions, their model files, and how long they have been
// left alone.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/file_identity.h"
#include "config/config.h"

namespace floe::server {

struct FoundVersion {
  int64_t version = 1;
  std::string file;    // of the model; empty when `error` says why there is none
  absl::Status error;  // INVALID_ARGUMENT: names the directory, what it holds, what was expected
  uint64_t stamp = 0;  // of names, sizes, times and modes of all files of the version
  // Since something in it changed: this host's time less the file system's, whose clock may be
  // another's. At least 0; max(): complete, as its marker says.
  Duration quiet = {};
  bool scanned = true;  // false: it exists, and nothing more is known
  // Of the file that it was loaded from, where that was asked for and is still there.
  std::optional<FileIdentity> identity = {};
};

// Directories that held no model file, so that one scan of each is enough until something is put
// there. Threading: one scan at a time.
struct EmptyVersions {
  struct Empty {
    FileIdentity directory;
    FoundVersion found;
  };
  std::map<int64_t, Empty> versions;
  int64_t scans = 0;  // of directories of versions
  // What changes within this of the change before may leave a file system's times as they are.
  Duration times_tell = std::chrono::seconds(2);
};

// Which of the versions that are there are scanned: those that the policy wants, and that
// labels name, but for those that are known. A scan reads every file's times, which takes a server
// of files a while.
struct VersionsToScan {
  VersionPolicy policy = {VersionPolicy::Kind::kAll, 1, {}};
  std::set<int64_t> skipped = {};  // `latest` scans the next older ones as well
  std::set<int64_t> known = {};
  std::set<int64_t> labelled = {};
  std::map<int64_t, std::string> loaded_files = {};  // of those that are known: to be identified
  std::shared_ptr<EmptyVersions> empty = nullptr;    // kept from scan to scan; may be null
  // The file that makes a version's directory complete, however new; without it the version has an
  // error. Empty: there is no such file.
  std::string marker = {};

  // `found` in descending order.
  std::set<int64_t> Among(const std::vector<int64_t>& found) const;
};

// Of versions without a model so many are found, the highest, and those that are asked for by their
// number.
inline constexpr int kMostWithoutModel = 16;

// Versions in descending order, at least one. Where `latest` comes upon one without a model it
// scans the next older one, too. `base_path` is a model file (version 1), a directory
// with one (version 1), or a directory with <version>/ directories. The model file is the only
// *.pb, *.pbtxt, *.keras or *.h5 but for the companions of a SavedModel and batching_params.pbtxt;
// of several, none is chosen.
// NOT_FOUND and PERMISSION_DENIED say when a service's sandbox may hide the path; INVALID_ARGUMENT:
// there is no version, with what was found and what was expected. Threading: any thread that may
// wait for a file system.
absl::StatusOr<std::vector<FoundVersion>> ScanVersions(const std::string& base_path,
                                                       const VersionsToScan& scan = {});

// As FoundVersion's, of the version with this model file: of all files beside and beneath it, or of
// the file alone where it is the model's base_path.
uint64_t StampOfVersion(const std::string& base_path, const std::string& file);

// How a registry scans.
using ScanFunction = std::function<absl::StatusOr<std::vector<FoundVersion>>(
    const std::string& base_path, const VersionsToScan& scan)>;

}  // namespace floe::server
