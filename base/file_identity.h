// FileIdentity: whether a path still leads to the bytes it led to before.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace floe {

// Two that are equal are of a file that nobody has written to, replaced or renamed in between, as
// far as a file system tells: times have its resolution.
struct FileIdentity {
  uint64_t device = 0, inode = 0;
  int64_t size = 0;
  int64_t modified_ns = 0, changed_ns = 0;  // since 1970; of the contents, and of anything
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

FileIdentity IdentityOf(const struct stat& info);

// Of the file that the path leads to. The error is the system's, and names the path.
absl::StatusOr<FileIdentity> IdentifyFile(const std::string& path);

}  // namespace floe
