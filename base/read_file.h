// Regular files: whole in memory, read piece by piece, or at any place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "base/file_identity.h"

namespace floe {

// A regular file that is read. Threading: one thread at a time; ReadAt from any.
class InputFile {
 public:
  // Errors name the path: NOT_FOUND and the like as the system says; INVALID_ARGUMENT for anything
  // that is not a regular file, or is larger than `max_bytes`.
  static absl::StatusOr<InputFile> Open(const std::string& path, int64_t max_bytes);
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&& other) = delete;
  ~InputFile();

  const std::string& path() const { return path_; }
  size_t size() const { return size_; }  // as all of these: when the file was opened
  const FileIdentity& identity() const { return identity_; }
  // How many of the bytes that follow were read into `buffer`: at most `size`, 0 at the end.
  // UNAVAILABLE when the file has become shorter.
  absl::StatusOr<size_t> Read(char* buffer, size_t size);
  // All `size` bytes at `offset`, which lie within size(). UNAVAILABLE as of Read. Changes nothing
  // of what Read reads next.
  absl::Status ReadAt(size_t offset, char* buffer, size_t size) const;

 private:
  InputFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  int fd_;
  std::string path_;
  size_t size_ = 0, at_ = 0;
  FileIdentity identity_;
};

struct FileBytes {
  std::unique_ptr<char[]> data;
  size_t size = 0;
  FileIdentity identity;  // when the file was opened
  std::string_view view() const { return {data.get(), size}; }
};

// Errors as InputFile's, and RESOURCE_EXHAUSTED without memory for the file.
absl::StatusOr<FileBytes> ReadFile(const std::string& path, int64_t max_bytes);

}  // namespace floe
