// The accept loop: polls all listeners, applies the limits, hands connections on, and keeps going
// when the process runs out of file descriptors.
#include "server/listener/acceptor.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <utility>

#include "base/status.h"
#include "base/threads.h"
#include "server/listener/socket_address.h"

namespace floe::server {
namespace {

// Accepted from one listener before the others have their turn.
constexpr int kTurn = 64;
// The loop rests this long when not even the reserve helps.
constexpr int kRestMillis = 100;

int OpenReserve() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

// The client sees a reset rather than an orderly end, which clients take for "try elsewhere".
void Reset(int fd) {
  const linger now = {1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  close(fd);
}

}  // namespace

Acceptor::Acceptor(std::vector<ListenSocket> listeners, ConnectionTable* connections, Take take)
    : listeners_(std::move(listeners)),
      connections_(*connections),
      take_(std::move(take)),
      reserve_(OpenReserve()),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

absl::Status Acceptor::Start() {
  FLOE_ASSIGN_OR_RETURN(thread_, TrySpawnThread({"accept", 0, {}}, [this] { Loop(); }));
  return absl::OkStatus();
}

void Acceptor::Stop() {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(wake_, &one, sizeof one);
    thread_.join();
  }
  for (ListenSocket& listener : listeners_) {
    // Clients whose connections are in the queue believe that they are connected.
    while (!listener.inherited() && listener.fd() >= 0 && AcceptOne(listener.fd())) {
    }
    listener.Close();
  }
  for (int* fd : {&reserve_, &wake_}) {
    if (*fd >= 0) close(std::exchange(*fd, -1));
  }
}

void Acceptor::Loop() {
  std::vector<pollfd> polled = {{wake_, POLLIN, 0}};
  for (const ListenSocket& listener : listeners_) polled.push_back({listener.fd(), POLLIN, 0});
  while ((polled[0].revents & POLLIN) == 0) {
    if (poll(polled.data(), polled.size(), -1) < 0) continue;
    for (size_t i = 1; i < polled.size(); ++i) {
      if (polled[i].revents == 0) continue;
      for (int n = 0; n < kTurn && AcceptOne(polled[i].fd); ++n) {
      }
    }
  }
}

// False when no connection waits, or none can be taken now.
bool Acceptor::AcceptOne(int listener) {
  sockaddr_storage peer = {};
  socklen_t size = sizeof peer;
  const int fd =
      accept4(listener, reinterpret_cast<sockaddr*>(&peer), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd >= 0) {
    TakeOrRefuse(listener, fd, peer);
    return true;
  }
  switch (errno) {
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
      return Shed(listener);
    case EAGAIN:
    case EBADF:
    case EINVAL:
      return false;
    default:
      return true;  // an error of that connection (accept(2)); the next may be sound
  }
}

void Acceptor::TakeOrRefuse(int listener, int fd, const sockaddr_storage& peer) {
  const std::string host = HostOf(peer);
  if (!connections_.Add(fd, host, PortOf(peer))) {
    Reset(fd);
    return connections_.LogRefusals();
  }
  if (!host.empty()) {
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const auto timeout = static_cast<unsigned>(
        std::chrono::duration_cast<std::chrono::milliseconds>(connections_.limits().send_timeout)
            .count());
    if (timeout > 0) setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof timeout);
  }
  take_(listener, fd);
}

// No descriptor is left: the reserve accepts the first connection of the queue and resets it.
bool Acceptor::Shed(int listener) {
  if (reserve_ >= 0) close(std::exchange(reserve_, -1));
  const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  if (fd >= 0) {
    connections_.CountRefusedForFiles();
    Reset(fd);
  }
  reserve_ = OpenReserve();
  connections_.LogRefusals();
  if (fd < 0) poll(nullptr, 0, kRestMillis);  // others took the reserve; do not spin
  return fd >= 0;
}

}  // namespace floe::server
