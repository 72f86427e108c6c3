// The interface of every transport: how calls reach the methods of server/api.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "server/api/roles.h"
#include "server/listener/acceptor.h"
#include "server/listener/call_book.h"

struct ssl_ctx_st;  // OpenSSL's SSL_CTX

namespace floe::server {

class Access;

// When connections end by themselves; zero: never.
struct ConnectionTimes {
  Duration idle = Duration::zero();  // without a call
  Duration age = Duration::zero();   // calls in progress then have `grace`
  Duration grace = std::chrono::minutes(1);
  Duration keepalive = Duration::zero();  // a client that is quiet for this time is pinged
  Duration handshake = std::chrono::seconds(20);
};

struct TransportOptions {
  // Larger requests are refused with RESOURCE_EXHAUSTED.
  int64_t max_message_bytes = int64_t{256} << 20;
  CallLimits calls;
  ConnectionTimes times;
  // Accepts requests compressed with gzip, of up to max_message_bytes unpacked.
  bool compression = false;
  ConnectionLimits connections;
  // How long Shutdown serves clients that were asked to leave and still send calls.
  Duration time_to_leave = std::chrono::seconds(2);
  // Says who callers are, and outlives the transport. Null: nobody asks.
  const Access* access = nullptr;
  // Of the loops: what waits for a time waits by it. Outlives the transport.
  const Clock* clock = &Clock::Steady();
};

// How a listener proves who it is, and whom it asks for the same. `context` gives OpenSSL's for a
// new connection, never null, on any thread; empty: plain text.
struct TlsSpec {
  std::function<std::shared_ptr<ssl_ctx_st>()> context;
};

struct ListenerSpec {
  // "host:port" (port 0 takes a free one), "[::1]:port", "unix:/path" (a stale socket file is
  // replaced), "unix-abstract:name", "fd:N" (ListenSocket).
  std::string address;
  TlsSpec tls = {};
  ListenerRoles roles = {};    // to whom calls that come by it are offered
  bool for_operators = false;  // ConnectionFacts::to_admin_listener
};

// Threading: Start, then from any thread addresses() and connections(); Shutdown once or more, from
// any thread that serves no call.
class Transport {
 public:
  virtual ~Transport() = default;

  // Opens every listener, or none. An error names the listener. At most once.
  virtual absl::Status Start(const std::vector<ListenerSpec>& listeners) = 0;

  // As bound, in the order given: "127.0.0.1:40213".
  virtual std::vector<std::string> addresses() const = 0;

  // Zeros before Start.
  virtual ListenerCounts connections() const = 0;
  virtual int64_t max_connections() const = 0;
  // The calls in progress, and those that were refused.
  virtual CallLoad calls() const = 0;
  virtual CallRefusals refused_calls() const = 0;

  // UNAVAILABLE: a thread that serves connections has been at one piece of work for too long.
  virtual absl::Status CheckTurning() const { return absl::OkStatus(); }

  // Accepts no new connections and asks clients to leave. Ends streams with UNAVAILABLE once their
  // written messages are sent. Refuses new calls of clients that stay with UNAVAILABLE. Waits for
  // the other calls until `deadline`, cancels the rest, and returns when no call runs any more. New
  // connections to inherited listeners wait for the next process.
  virtual void Shutdown(TimePoint deadline) = 0;
};

}  // namespace floe::server
