// How RPCs reach the methods of server/api: the interface of every transport.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "server/transport/acceptor.h"

namespace floe::server {

struct TransportOptions {
  // Larger requests are refused with RESOURCE_EXHAUSTED.
  int64_t max_message_bytes = int64_t{256} << 20;
  // Passed to gRPC as integers where the value is one, otherwise as strings.
  std::vector<std::pair<std::string, std::string>> channel_args;
  AcceptorLimits connections;
  // How long Shutdown goes on serving clients that were asked to leave and still send calls.
  Duration time_to_leave = std::chrono::seconds(2);
};

// Threading: Start, then from any thread addresses() and connections_refused(); Shutdown once or
// more, from any thread that serves no call.
class Transport {
 public:
  virtual ~Transport() = default;

  // Opens every listener, or none: "host:port" (port 0 takes a free one), "[::1]:port",
  // "unix:/path" (a stale socket file is replaced), "unix-abstract:name", "fd:N" (ListenSocket).
  // An error names the listener. At most once.
  virtual absl::Status Start(const std::vector<std::string>& listeners) = 0;

  // As bound, in the order given: "127.0.0.1:40213".
  virtual std::vector<std::string> addresses() const = 0;

  // Connections that found no room (AcceptorLimits), or no file descriptor, since the start.
  virtual int64_t connections_refused() const = 0;

  // Takes no new connections, asks clients to leave (GOAWAY), ends streams (UNAVAILABLE) once what
  // was written to them is sent, refuses new calls of clients that stay (UNAVAILABLE), waits for
  // the others until `deadline`, cancels what is left and returns when nothing runs any more.
  // Connections to inherited listeners wait for the next process.
  virtual void Shutdown(TimePoint deadline) = 0;
};

}  // namespace floe::server
