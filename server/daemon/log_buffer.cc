// The thread that writes: one line at a time, outside the lock, with retries of interrupted writes.
#include "server/daemon/log_buffer.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/threads.h"

namespace floe::server {

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
bool LogBuffer::Write(const std::string& text) const {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t written = write(fd_, text.data() + done, text.size() - done);
    if (written >= 0) {
      done += static_cast<size_t>(written);
    } else if (errno == EAGAIN) {  // another process made it non-blocking
      pollfd ready = {fd_, POLLOUT, 0};
      poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

void LogBuffer::Run() {
  mutex_.Lock();
  for (;;) {
    while (lines_.empty()) added_.Wait(mutex_);
    const int64_t lost = dropped_ - reported_;
    std::string text = lines_.front();
    // Dropped lines came after the waiting ones.
    const bool report = lost > 0 && lines_.size() == 1;
    if (report)
      absl::StrAppend(&text, lost, " lines of the log are missing here: it was not read in time\n");
    mutex_.Unlock();
    const bool written = Write(text);
    mutex_.Lock();
    if (report && written) reported_ += lost;
    if (!written) ++dropped_;
    bytes_ -= lines_.front().size();
    lines_.pop_front();
    if (lines_.empty()) written_.NotifyAll();
  }
}

}  // namespace floe::server
