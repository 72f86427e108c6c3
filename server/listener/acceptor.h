// Acceptor: one loop that accepts the connections of every listener and hands them on.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "server/listener/listen_socket.h"

namespace floe::server {

struct AcceptorLimits {
  int64_t max_connections = 0;  // 0, or more than that: what the limit of open files leaves
  int64_t max_connections_per_address = 0;  // of one TCP client address; 0: no limit
  // A TCP connection ends when its client takes none of what was sent for so long; zero: never.
  Duration send_timeout = Duration::zero();
};

struct AcceptorCounts {
  int64_t accepted = 0;  // and handed on
  int64_t open = 0;      // now
  int64_t refused_total = 0, refused_address = 0;
  int64_t refused_files = 0;  // no file descriptor was left for them
  int64_t refused() const { return refused_total + refused_address + refused_files; }
};

// A connection beyond a limit is accepted and closed at once, so that its client hears of it and
// the queue of the listener never stands still; the same holds when the process has no file
// descriptor left, for which one is kept in reserve. Connections that are open are known by their
// descriptors: whoever they were handed to closes them without a word, so they are looked up (by
// the socket's inode) when a limit is met.
//
// Threading: Start and Stop once, from one thread; the rest from any.
class Acceptor {
 public:
  // Owns `fd` from then on: a connected, non-blocking, close-on-exec socket.
  using Take = std::function<void(int listener_fd, int fd)>;

  Acceptor(std::vector<ListenSocket> listeners, AcceptorLimits limits, Take take);
  ~Acceptor() { Stop(); }
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  // RESOURCE_EXHAUSTED when the system gives no thread.
  absl::Status Start();

  // Takes what is already queued (not at inherited listeners, whose queue outlives this process),
  // and closes the listeners.
  void Stop();

  // Calls `send` and returns what it says while whoever has the connections with peers of this port
  // (0: they have none) is writing nothing large to them; otherwise false at once.
  using Aside = std::function<bool(uint16_t port, const std::function<bool()>& send)>;

  // Writes `farewell`, which is short, to each open connection once, past whoever it was handed to.
  // So that it does not land within what they are sending, it is kept back while `aside` says so, a
  // connection is new (`settled` ago or less) or its socket holds much that has not arrived; who is
  // not told by `deadline` is not told. After Stop.
  void Tell(std::string_view farewell, const Aside& aside, Duration settled, TimePoint deadline);
  // Returns when the connections are closed, which others must do, or at `deadline`. After Stop.
  void AwaitClosed(TimePoint deadline);
  // To whoever has the open connections, their clients seem to have left; returns when all are
  // closed, or at `deadline`. After Stop.
  void CloseConnections(TimePoint deadline);

  // Ends the TCP connection of this client, if it is open.
  void Cut(std::string_view host, uint16_t port);
  // Of what was sent to it; 0 where there is no such connection.
  int64_t BytesTaken(std::string_view host, uint16_t port) const;

  AcceptorCounts Counts();
  int64_t max_connections() const { return limits_.max_connections; }

 private:
  struct Open {
    ino_t inode;
    std::string host;  // of TCP clients
    uint16_t port;     // of TCP clients
    TimePoint since;
    bool told = false;
  };

  void Loop();
  int Find(std::string_view host, uint16_t port) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool AcceptOne(int listener);
  void TakeOrRefuse(int listener, int fd, const sockaddr_storage& peer);
  bool Shed(int listener);
  void LogRefusals();
  static void LookUntil(TimePoint deadline, const std::function<bool()>& look);
  bool AnyOpen() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(int fd) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetClosed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasRoom(const std::string& host) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::vector<ListenSocket> listeners_;  // the loop's while it runs
  AcceptorLimits limits_;
  const Take take_;
  int reserve_ = -1;  // a descriptor to accept with when there is no other
  int wake_ = -1;     // eventfd
  std::thread thread_;

  mutable Mutex mutex_;
  std::unordered_map<int, Open> open_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int64_t> by_host_ ABSL_GUARDED_BY(mutex_);
  AcceptorCounts counts_ ABSL_GUARDED_BY(mutex_);
  TimePoint next_look_ ABSL_GUARDED_BY(mutex_) = TimePoint::min();
  TimePoint next_line_ ABSL_GUARDED_BY(mutex_) = TimePoint::min();
};

}  // namespace floe::server
