// A whole file mapped read-only.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/file_identity.h"

namespace floe {

// Unmapped with the object. The file may be removed or renamed over meanwhile, but not written in
// place, which changes what is read. Where it is cut short, or cannot be read, the bytes read as
// zeros and damaged() says so, in place of the SIGBUS that would end the process; Open takes that
// signal over for the whole process, and hands on those that are of no mapped file.
// Threading: any thread.
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
  const FileIdentity& identity() const { return identity_; }  // when it was opened
  // Something that was read is not what the file had: nothing made from it is to be believed.
  bool damaged() const { return guard_ != nullptr && guard_->damaged.load(); }

  // A range whose faults are forgiven. One of a fixed number, since a signal's handler looks for
  // it.
  struct Guard {
    std::atomic<uintptr_t> begin{0}, end{0};  // 0: free
    std::atomic<bool> damaged{false};
  };

 private:
  MappedFile() = default;
  const char* data_ = nullptr;
  size_t size_ = 0;
  FileIdentity identity_;
  Guard* guard_ = nullptr;  // null: empty, or there are more files than guards
};

}  // namespace floe
