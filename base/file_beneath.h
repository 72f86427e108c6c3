// Files that belong to a model: nothing outside its directory may be read on a file's say-so.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace floe {

// The bytes of a regular file. `path` is relative to `directory`; neither ".." nor a symbolic link
// on the way may lead out of it. NOT_FOUND: there is none. INVALID_ARGUMENT: an absolute or empty
// path, one that leaves the directory, no regular file, or more than `max_bytes`. Messages name
// `path`, not the directory.
absl::StatusOr<std::string> ReadFileBeneath(const std::string& directory, const std::string& path,
                                            int64_t max_bytes);

// The same file in parts of at most a MiB, as long as `take` says OK; the first other status ends
// it. Whatever the file's size: nothing but a part is kept.
absl::Status ReadBlocksBeneath(const std::string& directory, const std::string& path,
                               const std::function<absl::Status(std::string_view)>& take);

// The directory part of a file's path: "." for a bare name, "/" for a file of the root.
std::string DirectoryOf(const std::string& path);

namespace internal {

// A file beneath an open directory without the system call for it, which gVisor and the filters of
// old container runtimes do not have. Stricter: it follows no links at all. Negative: errno.
int OpenBeneathStepwise(int directory, const std::string& path);

}  // namespace internal
}  // namespace floe
