// Listening sockets of every kind, opened by floe itself or handed over by the service manager.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace floe::server {

// An open listening socket, non-blocking. Closed with the object; a unix socket's file that was
// made here goes with it.
class ListenSocket {
 public:
  // "host:port" (port 0 takes a free one; the first of a name's addresses that can be bound) or
  // "[::1]:port". "unix:/path" (a file that nobody listens at any more is replaced) or
  // "unix-abstract:name". "fd:N" (a listening stream socket that this process was started with).
  // INVALID_ARGUMENT for anything else, UNAVAILABLE with the reason when it cannot be opened; both
  // name the listener.
  static absl::StatusOr<ListenSocket> Open(const std::string& listener);

  ListenSocket(ListenSocket&& other) noexcept;
  ListenSocket& operator=(ListenSocket&& other) noexcept;
  ~ListenSocket() { Close(); }

  int fd() const { return fd_; }
  // As bound: "127.0.0.1:40213", "unix:/path".
  const std::string& address() const { return address_; }
  // The socket lives on in the service manager, whose queue keeps what comes when this one closes.
  bool inherited() const { return inherited_; }
  void Close();

 private:
  ListenSocket(int fd, std::string address) : fd_(fd), address_(std::move(address)) {}

  int fd_ = -1;
  std::string address_;
  std::string file_;  // removed by Close
  bool inherited_ = false;
};

}  // namespace floe::server
