// ConnectionTable: the open connections of a server's listeners, their limits and their end.
#pragma once

#include <cstdint>
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
  int64_t displaced = 0;      // closed for clients of other addresses
  int64_t refused() const { return refused_total + refused_address + refused_files; }
};

// Knows open connections by their descriptors. Who owns a connection removes it before closing it.
// Threading: any thread.
class ConnectionTable {
 public:
  // Lowers max_connections to what the limit of open files allows, and logs that.
  explicit ConnectionTable(ConnectionLimits limits);

  // Adds a connection that was just accepted. False: a limit is reached, and `fd` is the caller's.
  // At max_connections, the address with most connections gives one up for a client whose address
  // has fewer: its youngest.
  // `host` and `port`: a TCP client's; "" and 0 of unix sockets.
  bool Add(int fd, const std::string& host, uint16_t port);
  void Remove(int fd);
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
  // Of a connection that is open still for its owner.
  bool WasCut(int fd) const;
  // Bytes that this client has acknowledged; 0 if there is no such connection.
  int64_t BytesAcknowledged(std::string_view host, uint16_t port) const;

  ListenerCounts Counts() const;
  const ConnectionLimits& limits() const { return limits_; }

 private:
  struct Connection {
    std::string host;
    uint16_t port;
    int64_t number = 0;    // in the order of their arrival
    bool leaving = false;  // it was ended for another
    bool cut = false;
  };

  // Counts a refusal where there is none.
  bool HasRoom(const std::string& host) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // False: no address has so many more connections than `host`.
  bool Displace(const std::string& host) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int Find(std::string_view host, uint16_t port) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ConnectionLimits limits_;
  mutable Mutex mutex_;
  CondVar empty_;
  std::unordered_map<int, Connection> open_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int64_t> by_host_ ABSL_GUARDED_BY(mutex_);
  int64_t leaving_ ABSL_GUARDED_BY(mutex_) = 0;
  ListenerCounts counts_ ABSL_GUARDED_BY(mutex_);
  TimePoint next_line_ ABSL_GUARDED_BY(mutex_) = TimePoint::min();
};

}  // namespace floe::server
