// How the connections of a server end when it stops.
#pragma once

#include <functional>

#include "base/clock.h"
#include "server/listener/acceptor.h"
#include "server/listener/call_gate.h"

namespace floe::server {

// A server's parts. They outlive Drain.
struct DrainedServer {
  Acceptor& acceptor;
  ConnectionTable& connections;
  CallGate& gate;
  // Asks all clients to leave, in the transport's protocol; returns by the time it is given.
  std::function<void(TimePoint until)> ask_to_leave;
  std::function<void()> end_streams;
  // How long clients that got the farewell, and still send calls, are served.
  Duration time_to_leave = Duration::zero();
};

// Accepts no new connections, asks clients to leave, ends streams, finishes the calls in progress
// until `deadline`, and closes the connections. The gate refuses calls that still come.
// Threading: once; it blocks.
void Drain(const DrainedServer& server, TimePoint deadline);

}  // namespace floe::server
