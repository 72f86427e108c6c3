// ConnectionTable: the open connections of a server's listeners, their limits and their end.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/clock.h"
#include "base/mutex.h"

namespace floe::server {

struct ConnectionLimits {
  int64_t max_connections = 0;              // 0, or too many: what the limit of open files allows
  int64_t max_connections_per_address = 0;  // of one TCP client address; 0: no limit
  // A TCP connection ends when its client acknowledges nothing for this time; zero: never.
  Duration send_timeout = Duration::zero();
};

struct ListenerCounts {
  int64_t accepted = 0;  // and handed on
  int64_t open = 0;      // now
  int64_t refused_total = 0, refused_address = 0;
  int64_t refused_files = 0;  // no file descriptor was left for them
  int64_t refused() const { return refused_total + refused_address + refused_files; }
};

// Knows open connections by their descriptors. Their owner closes them without a message, so the
// table finds closed ones by the socket's inode when a limit is reached.
// Threading: any thread.
class ConnectionTable {
 public:
  // Lowers max_connections to what the limit of open files allows, and logs that.
  explicit ConnectionTable(ConnectionLimits limits);

  // Adds a connection that was just accepted. False: a limit is reached, and `fd` is the caller's.
  bool Add(int fd, const std::string& host, uint16_t port);
  // A connection was refused because no descriptor was left.
  void CountRefusedForFiles();
  // Logs the refusals so far, at most one line in ten seconds.
  void LogRefusals();

  // Returns when the owners have closed all connections, or at `deadline`.
  void AwaitClosed(TimePoint deadline);
  // Makes the clients seem to have left, and awaits the end of all connections, or `deadline`.
  void CloseAll(TimePoint deadline);

  // Ends the TCP connection of this client, if it is open.
  void Cut(std::string_view host, uint16_t port);
  // Bytes that this client has acknowledged; 0 if there is no such connection.
  int64_t BytesAcknowledged(std::string_view host, uint16_t port) const;

  ListenerCounts Counts();
  const ConnectionLimits& limits() const { return limits_; }

 private:
  struct Connection {
    ino_t inode;
    std::string host;  // of TCP clients
    uint16_t port;     // of TCP clients
  };

  bool HasRoom(const std::string& host) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Remove(int fd) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveClosed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int Find(std::string_view host, uint16_t port) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Calls `visit` for every open connection, again and again until all its results are true or
  // `deadline` is over; at least once.
  void VisitUntil(TimePoint deadline, const std::function<bool(int fd, Connection*)>& visit);

  ConnectionLimits limits_;
  mutable Mutex mutex_;
  std::unordered_map<int, Connection> open_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int64_t> by_host_ ABSL_GUARDED_BY(mutex_);
  ListenerCounts counts_ ABSL_GUARDED_BY(mutex_);
  TimePoint next_scan_ ABSL_GUARDED_BY(mutex_) = TimePoint::min();
  TimePoint next_line_ ABSL_GUARDED_BY(mutex_) = TimePoint::min();
};

}  // namespace floe::server
