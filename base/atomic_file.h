// Writing a file so that others see the old one or the whole new one, never a part.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace floe {

// Writes beside the target under a temporary name. Without Commit nothing is left behind.
// Threading: one thread at a time.
class AtomicFile {
 public:
  // Errors of every call name the path.
  static absl::StatusOr<AtomicFile> Create(const std::string& path);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  absl::Status Write(const void* data, size_t size);
  // Brings the bytes to the disk, then puts the file in the target's place. Once, and last.
  absl::Status Commit();

 private:
  AtomicFile() = default;
  absl::Status Failed(const char* what) const;
  std::string path_, temporary_;
  int fd_ = -1;
};

}  // namespace floe
