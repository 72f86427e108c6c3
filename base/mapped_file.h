// A regular file's bytes as the page cache has them.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace floe {

// Read-only. The file may be renamed or deleted; whoever cuts it short ends the process at the
// next look at what is missing, so map only what nobody writes to.
// Threading: any thread reads.
class MappedFile {
 public:
  // Errors name the path: as the system says; INVALID_ARGUMENT for what is not a regular file.
  static absl::StatusOr<std::shared_ptr<const MappedFile>> Open(const std::string& path);
  MappedFile(const void* data, size_t size) : data_(data), size_(size) {}
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::string_view view() const { return {static_cast<const char*>(data_), size_}; }

 private:
  const void* const data_;  // null: an empty file
  const size_t size_;
};

}  // namespace floe
