// LogBuffer: lines on their way to a file that may block, for a while or for ever.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/mutex.h"

namespace floe::server {

// Adding a line never blocks: a thread writes, and lines beyond the bound are dropped. A line in
// their place says how many. The thread is never joined, because a write may block for ever, so the
// buffer lives as long as the process. spdlog's async logger bounds messages instead of bytes,
// joins its thread, and has no flush with a deadline. Threading: any thread.
class LogBuffer {
 public:
  static constexpr size_t kMostBytes = size_t{1} << 20;

  explicit LogBuffer(int fd, size_t most_bytes = kMostBytes) : fd_(fd), most_bytes_(most_bytes) {}
  ~LogBuffer() = delete;

  // RESOURCE_EXHAUSTED when the system gives no thread. Once.
  absl::Status Start();
  // `line` includes its newline.
  void Add(std::string line);
  // False when `until` came before all lines were written.
  bool Flush(TimePoint until);
  int64_t dropped() const;  // since the start

 private:
  void Run();
  bool Write(const std::string& text) const;

  const int fd_;
  const size_t most_bytes_;
  mutable Mutex mutex_;
  CondVar added_, written_;
  std::deque<std::string> lines_ ABSL_GUARDED_BY(mutex_);  // each until it is written
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0, reported_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace floe::server
