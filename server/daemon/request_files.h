// RequestFiles: the files of a request log, one for each model.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "server/daemon/log_buffer.h"

namespace floe::server {

// DIRECTORY/MODEL.tfrecord, and DIRECTORY/MODEL.tfrecord.1 with what was written before it was
// full. In names of models, what is no letter, digit, '_', '-' or '.' is %XX. Each file has a
// thread that writes. Threading: any thread.
class RequestFiles {
 public:
  RequestFiles(std::string directory, int64_t file_bytes)
      : directory_(std::move(directory)), file_bytes_(file_bytes) {}

  // FAILED_PRECONDITION: nothing can be written to the directory.
  absl::Status Check() const;
  // Never blocks: drops what cannot be written in time.
  void Add(const std::string& model, std::string record);
  void Flush(TimePoint until);
  int64_t dropped() const;

  static std::string FileOf(const std::string& model);

 private:
  const std::string directory_;
  const int64_t file_bytes_;
  mutable Mutex mutex_;
  std::map<std::string, LogBuffer*> files_ ABSL_GUARDED_BY(mutex_);  // null: it has no thread
};

}  // namespace floe::server
