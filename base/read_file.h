// A whole regular file in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/file_identity.h"

namespace floe {

struct FileBytes {
  std::unique_ptr<char[]> data;
  size_t size = 0;
  FileIdentity identity;  // when the file was opened
  std::string_view view() const { return {data.get(), size}; }
};

// Errors name the path: NOT_FOUND and the like as the system says; INVALID_ARGUMENT for anything
// that is not a regular file, or is larger than `max_bytes`; UNAVAILABLE when the file becomes
// shorter while it is read; RESOURCE_EXHAUSTED without memory for it.
absl::StatusOr<FileBytes> ReadFile(const std::string& path, int64_t max_bytes);

}  // namespace floe
