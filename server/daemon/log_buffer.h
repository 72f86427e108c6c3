// LogBuffer: lines on their way to a file that may block, for a while or for ever.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "absl/status/statusor.h"
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

  // What a line says of so many lines that are missing, with its newline.
  using Missing = std::string (*)(int64_t lines);

  explicit LogBuffer(int fd, size_t most_bytes = kMostBytes, Missing missing = nullptr)
      : fd_(fd), most_bytes_(most_bytes), missing_(missing) {}
  ~LogBuffer() = delete;

  struct File {
    std::string path;
    // When it would be larger it becomes PATH.1, in place of an older one, and a new one begins. A
    // line that is written in part is taken back. 0: it may grow for ever.
    int64_t most_file_bytes = 0;
    size_t most_bytes = kMostBytes;
    Missing missing = nullptr;
  };
  // Appends to a file, which the thread that writes makes where there is none.
  explicit LogBuffer(File file)
      : path_(std::move(file.path)),
        most_file_bytes_(file.most_file_bytes),
        most_bytes_(file.most_bytes),
        missing_(file.missing) {}
  // The same of a file that is opened now. Errors name the path.
  static absl::StatusOr<LogBuffer*> ForFile(const std::string& path, Missing missing);
  // Of ForFile: goes on with the file that has the path now, once the old one was moved away. An
  // error changes nothing.
  absl::Status Reopen();

  // RESOURCE_EXHAUSTED when the system gives no thread. Once.
  absl::Status Start();
  // `line` includes its newline.
  void Add(std::string line);
  // False when `until` came before all lines were written.
  bool Flush(TimePoint until);
  int64_t dropped() const;  // since the start

 private:
  void Run();
  static bool Write(int fd, const std::string& text);

  void OpenFor(size_t bytes);

  int fd_ = -1;             // of the thread that writes, as is file_bytes_
  int64_t file_bytes_ = 0;  // where the file is bounded
  const std::string path_;  // "": it is no file of this class's
  const int64_t most_file_bytes_ = 0;
  const size_t most_bytes_;
  const Missing missing_;
  mutable Mutex mutex_;
  CondVar added_, written_;
  std::deque<std::string> lines_ ABSL_GUARDED_BY(mutex_);  // each until it is written
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int next_fd_ ABSL_GUARDED_BY(mutex_) = -1;  // takes the place of fd_
  int64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0, reported_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace floe::server
