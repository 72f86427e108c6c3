// The end of a server: farewell to the clients, the last calls, the end of the connections.
#include "server/listener/drain.h"

#include <algorithm>

namespace floe::server {
namespace {

// Within this time both ends of a connection have usually sent their prefaces (RFC 9113 3.4).
constexpr Duration kHandshake = std::chrono::milliseconds(50);
// Clients without a call for this time have left, or have nothing to lose.
constexpr Duration kQuiet = std::chrono::milliseconds(100);
constexpr Duration kLastBytes = std::chrono::seconds(1);

// The farewell must not land inside a frame that is partly written. So it is sent while no reply of
// the connection is in progress. Other frames have a few bytes, and a socket that is nearly empty
// takes them whole. A connection with replies in progress until the deadline gets no farewell; its
// next calls find a closed gate. Clients finish their calls, take the next ones elsewhere, and
// close the connection.
void AskClientsToLeave(const DrainedServer& server, TimePoint deadline) {
  ConnectionTable& connections = server.acceptor.connections();
  const auto aside = [&server](uint16_t port, const std::function<bool()>& send) {
    return server.gate.replies()->Aside(ReplyCount::SlotOf(port), send);
  };
  connections.SendFarewell(server.farewell, aside, kHandshake, deadline);
  server.end_streams();  // they would keep their connections
  int64_t calls = -1;
  while (calls != server.gate.entered() && Clock::Steady().Now() < deadline) {
    calls = server.gate.entered();
    connections.AwaitClosed(std::min(deadline, Clock::Steady().Now() + kQuiet));
  }
}

}  // namespace

void Drain(const DrainedServer& server, TimePoint deadline) {
  server.acceptor.Stop();
  AskClientsToLeave(server, std::min(deadline, Clock::Steady().Now() + server.time_to_leave));
  server.gate.CloseAndWait(deadline);
  server.acceptor.connections().CloseAll(std::min(deadline, Clock::Steady().Now() + kLastBytes));
}

}  // namespace floe::server
