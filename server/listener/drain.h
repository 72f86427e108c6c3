// How the connections of a server end when it stops.
#pragma once

#include <functional>
#include <string_view>

#include "base/clock.h"
#include "server/listener/acceptor.h"
#include "server/listener/call_gate.h"
#include "server/listener/reply_count.h"

namespace floe::server {

// A server's parts. They outlive Drain.
struct DrainedServer {
  Acceptor& acceptor;
  CallGate& gate;
  ReplyCount& replies;
  // What asks a client to leave, written to each connection beside the protocol's own code.
  std::string_view farewell;
  std::function<void()> end_streams;
  // How long clients that were asked to leave, and still send calls, are served.
  Duration time_to_leave = Duration::zero();
};

// Takes no new connections, asks clients to leave, ends streams, finishes the calls in progress
// until `deadline`, and closes the connections. Calls that come in the end are refused by the gate.
// Threading: once; it blocks.
void Drain(const DrainedServer& server, TimePoint deadline);

}  // namespace floe::server
