// The end of a server: farewell to the clients, the last calls, the end of the connections.
#include "server/listener/drain.h"

#include <algorithm>

namespace floe::server {
namespace {

// Clients without a call for this time have left, or have nothing to lose.
constexpr Duration kQuiet = std::chrono::milliseconds(100);
constexpr Duration kLastBytes = std::chrono::seconds(1);

// Clients finish their calls, take the next ones elsewhere, and close the connection.
void AskClientsToLeave(const DrainedServer& server, TimePoint deadline) {
  server.ask_to_leave(deadline);
  server.end_streams();  // they would keep their connections
  int64_t calls = -1;
  while (calls != server.gate.entered() && Clock::Steady().Now() < deadline) {
    calls = server.gate.entered();
    server.connections.AwaitClosed(std::min(deadline, Clock::Steady().Now() + kQuiet));
  }
}

}  // namespace

void Drain(const DrainedServer& server, TimePoint deadline) {
  server.acceptor.Stop();
  AskClientsToLeave(server, std::min(deadline, Clock::Steady().Now() + server.time_to_leave));
  server.gate.CloseAndWait(deadline);
  server.connections.CloseAll(std::min(deadline, Clock::Steady().Now() + kLastBytes));
}

}  // namespace floe::server
