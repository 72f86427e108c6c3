#include "server/listener/drain.h"

#include <algorithm>

namespace floe::server {
namespace {

// Both ends of a connection speak first (RFC 9113 3.4) within this time, mostly.
constexpr Duration kHandshake = std::chrono::milliseconds(50);
// Clients that have sent no call for so long have left, or have nothing to lose.
constexpr Duration kQuiet = std::chrono::milliseconds(100);
constexpr Duration kLastBytes = std::chrono::seconds(1);

// The farewell must not land within a frame of which the socket has taken a part. So it is sent
// while no reply of the connection is under way: what else is written are frames of a few bytes,
// which a socket that is nearly empty takes whole. A connection that has replies under way until
// the deadline is not asked; its calls find a closed gate. Clients finish what they began, take
// their next calls elsewhere, and close the connection.
void AskClientsToLeave(const DrainedServer& server, TimePoint deadline) {
  const auto aside = [&server](uint16_t port, const std::function<bool()>& send) {
    return server.replies.Aside(ReplyCount::SlotOfPort(port), send);
  };
  server.acceptor.Tell(server.farewell, aside, kHandshake, deadline);
  server.end_streams();  // they would keep their connections
  int64_t calls = -1;
  while (calls != server.gate.entered() && Clock::Steady().Now() < deadline) {
    calls = server.gate.entered();
    server.acceptor.AwaitClosed(std::min(deadline, Clock::Steady().Now() + kQuiet));
  }
}

}  // namespace

void Drain(const DrainedServer& server, TimePoint deadline) {
  server.acceptor.Stop();
  AskClientsToLeave(server, std::min(deadline, Clock::Steady().Now() + server.time_to_leave));
  server.gate.CloseAndWait(deadline);
  server.acceptor.CloseConnections(std::min(deadline, Clock::Steady().Now() + kLastBytes));
}

}  // namespace floe::server
