// How RPCs reach the methods of server/api: the interface of every transport.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "server/listener/acceptor.h"
#include "server/listener/call_book.h"

namespace floe::server {

// When connections end by themselves; zero: never.
struct ConnectionTimes {
  Duration idle = Duration::zero();  // without a call
  Duration age = Duration::zero();   // calls in progress then have `grace`
  Duration grace = std::chrono::minutes(1);
  Duration keepalive = Duration::zero();  // quiet for so long, a client is asked whether it lives
  Duration handshake = std::chrono::seconds(20);
};

struct TransportOptions {
  // Larger requests are refused with RESOURCE_EXHAUSTED.
  int64_t max_message_bytes = int64_t{256} << 20;
  // Of requests that are still arriving, all together; 0: no limit.
  int64_t max_arriving_bytes = 0;
  CallLimits calls;
  ConnectionTimes times;
  // Requests may be compressed with gzip; they may have max_message_bytes unpacked.
  bool compression = false;
  // Passed to gRPC as integers where the value is one, otherwise as strings. They replace what
  // follows from the options above.
  std::vector<std::pair<std::string, std::string>> channel_args;
  AcceptorLimits connections;
  // How long Shutdown goes on serving clients that were asked to leave and still send calls.
  Duration time_to_leave = std::chrono::seconds(2);
};

// Threading: Start, then from any thread addresses(), connections() and ConnectInside();
// Shutdown once or more, from any thread that serves no call.
class Transport {
 public:
  virtual ~Transport() = default;

  // Opens every listener, or none: "host:port" (port 0 takes a free one), "[::1]:port",
  // "unix:/path" (a stale socket file is replaced), "unix-abstract:name", "fd:N" (ListenSocket).
  // An error names the listener. At most once.
  virtual absl::Status Start(const std::vector<std::string>& listeners) = 0;

  // As bound, in the order given: "127.0.0.1:40213".
  virtual std::vector<std::string> addresses() const = 0;

  // Zeros before Start.
  virtual AcceptorCounts connections() const = 0;
  virtual int64_t max_connections() const = 0;

  // A connection to this server that passes no listener and counts for no limit of theirs: its
  // other end, non-blocking, the caller's.
  virtual absl::StatusOr<int> ConnectInside() = 0;

  // Takes no new connections, asks clients to leave (GOAWAY), ends streams (UNAVAILABLE) once what
  // was written to them is sent, refuses new calls of clients that stay (UNAVAILABLE), waits for
  // the others until `deadline`, cancels what is left and returns when nothing runs any more.
  // Connections to inherited listeners wait for the next process.
  virtual void Shutdown(TimePoint deadline) = 0;
};

}  // namespace floe::server
