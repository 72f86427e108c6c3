// Acceptor: one loop that accepts the connections of every listener and hands them on.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "server/listener/connection_table.h"
#include "server/listener/listen_socket.h"

namespace floe::server {

// A connection beyond a limit is accepted and closed at once, so that its client hears of it and
// the listener's queue keeps moving. For a process without free descriptors, one is kept in
// reserve.
//
// Threading: Start and Stop once, from one thread; the rest from any.
class Acceptor {
 public:
  // Owns `fd` from then on: a connected, non-blocking, close-on-exec socket.
  using Take = std::function<void(int listener_fd, int fd)>;

  // `connections` outlives it: those that were accepted.
  Acceptor(std::vector<ListenSocket> listeners, ConnectionTable* connections, Take take);
  ~Acceptor() { Stop(); }
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  // RESOURCE_EXHAUSTED when the system gives no thread.
  absl::Status Start();

  // Accepts what is already queued (not at inherited listeners, whose queue outlives this process),
  // and closes the listeners.
  void Stop();

 private:
  void Loop();
  bool AcceptOne(int listener);
  void TakeOrRefuse(int listener, int fd, const sockaddr_storage& peer);
  bool Shed(int listener);

  std::vector<ListenSocket> listeners_;  // the loop's while it runs

  ConnectionTable& connections_;
  const Take take_;
  int reserve_ = -1;  // a descriptor to accept with when there is no other
  int wake_ = -1;     // eventfd
  std::thread thread_;
};

}  // namespace floe::server
