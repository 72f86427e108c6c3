// A whole file mapped read-only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace floe {

// Unmapped with the object. The file may be removed or renamed over meanwhile, but not cut short or
// written in place. Threading: immutable, any thread.
class MappedFile {
 public:
  // A regular file of at most `max_bytes`. Errors name the path: NOT_FOUND and the like as the
  // system says, INVALID_ARGUMENT for anything that is no regular file or too large.
  static absl::StatusOr<std::shared_ptr<const MappedFile>> Open(const std::string& path,
                                                                int64_t max_bytes);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const char* data() const { return data_; }  // aligned to a page; null when empty
  size_t size() const { return size_; }

 private:
  MappedFile() = default;
  const char* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace floe
