// A file descriptor that is closed with its owner.
#pragma once

#include <unistd.h>

#include <utility>

namespace floe {

class OwnedFd {
 public:
  explicit OwnedFd(int fd = -1) : fd_(fd) {}  // -1: none
  OwnedFd(OwnedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~OwnedFd() { Close(); }
  void Close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace floe
