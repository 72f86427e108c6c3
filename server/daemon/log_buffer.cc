// The thread that writes: one line at a time, outside the lock, with retries of interrupted writes.
#include "server/daemon/log_buffer.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/status.h"
#include "base/threads.h"

namespace floe::server {

namespace {

absl::StatusOr<int> OpenToAppend(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0640);
  if (fd >= 0) return fd;
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", Quoted(path), " to append to it"));
}

std::string TextOfMissing(int64_t lines) {
  return absl::StrCat(lines, " lines of the log are missing here: it was not read in time\n");
}

}  // namespace

absl::StatusOr<LogBuffer*> LogBuffer::ForFile(const std::string& path, Missing missing) {
  FLOE_ASSIGN_OR_RETURN(const int fd, OpenToAppend(path));
  auto* const made = new LogBuffer(File{.path = path, .missing = missing});
  made->fd_ = fd;
  return made;
}

absl::Status LogBuffer::Reopen() {
  FLOE_ASSIGN_OR_RETURN(const int fd, OpenToAppend(path_));
  MutexLock lock(mutex_);
  if (next_fd_ >= 0) close(next_fd_);
  next_fd_ = fd;
  return absl::OkStatus();
}

absl::Status LogBuffer::Start() {
  FLOE_ASSIGN_OR_RETURN(std::thread thread, TrySpawnThread({"log", 0, {}}, [this] { Run(); }));
  thread.detach();
  return absl::OkStatus();
}

void LogBuffer::Add(std::string line) {
  MutexLock lock(mutex_);
  if (bytes_ + line.size() > most_bytes_) {
    ++dropped_;
    return;
  }
  bytes_ += line.size();
  lines_.push_back(std::move(line));
  added_.NotifyOne();
}

bool LogBuffer::Flush(TimePoint until) {
  MutexLock lock(mutex_);
  while (!lines_.empty() && written_.WaitUntil(mutex_, until)) {
  }
  return lines_.empty();
}

int64_t LogBuffer::dropped() const {
  MutexLock lock(mutex_);
  return dropped_;
}

// False: the rest of the line is lost. A full disk may have room for the next line.
bool LogBuffer::Write(int fd, const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t written = write(fd, text.data() + done, text.size() - done);
    if (written >= 0) {
      done += static_cast<size_t>(written);
    } else if (errno == EAGAIN) {  // another process made it non-blocking
      pollfd ready = {fd, POLLOUT, 0};
      poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

// What cannot be opened is tried again with the next line.
void LogBuffer::OpenFor(size_t bytes) {
  const auto more = static_cast<int64_t>(bytes);
  for (int tries = 0; tries < 2; ++tries) {
    if (fd_ < 0) {
      fd_ = OpenToAppend(path_).value_or(-1);
      struct stat info = {};
      file_bytes_ = fd_ >= 0 && fstat(fd_, &info) == 0 ? info.st_size : 0;
    }
    if (most_file_bytes_ == 0 || file_bytes_ == 0 || file_bytes_ + more <= most_file_bytes_) return;
    close(std::exchange(fd_, -1));
    (void)rename(path_.c_str(), absl::StrCat(path_, ".1").c_str());
  }
}

void LogBuffer::Run() {
  mutex_.Lock();
  for (;;) {
    while (lines_.empty()) added_.Wait(mutex_);
    const int64_t lost = dropped_ - reported_;
    std::string text = lines_.front();
    // Dropped lines came after the waiting ones.
    const bool report = lost > 0 && lines_.size() == 1;
    if (report) text += missing_ == nullptr ? TextOfMissing(lost) : missing_(lost);
    const int next = std::exchange(next_fd_, -1);
    mutex_.Unlock();
    if (next >= 0) {
      close(fd_);
      fd_ = next;
    }
    if (!path_.empty()) OpenFor(text.size());
    const bool written = Write(fd_, text);
    if (written) file_bytes_ += static_cast<int64_t>(text.size());
    if (!written && most_file_bytes_ > 0 && fd_ >= 0) (void)ftruncate(fd_, file_bytes_);
    mutex_.Lock();
    if (report && written) reported_ += lost;
    if (!written) ++dropped_;
    bytes_ -= lines_.front().size();
    lines_.pop_front();
    if (lines_.empty()) written_.NotifyAll();
  }
}

}  // namespace floe::server
