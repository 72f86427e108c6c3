// The accept loop: polls all listeners, applies the limits, hands connections on, and keeps going
// when the process runs out of file descriptors.
#include "server/listener/acceptor.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <spdlog/spdlog.h>
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
#include "server/listener/stranger.h"

namespace floe::server {
namespace {

// Accepted from one listener before the others have their turn.
constexpr int kTurn = 64;
// Clients of HTTP/2 speak first, at once. For those that do not, the server does after this time.
constexpr Duration kSilence = std::chrono::milliseconds(50);
// So many connections are waited for.
constexpr size_t kMostSilent = 256;
// Between lines about strangers.
constexpr Duration kLineEvery = std::chrono::seconds(10);
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

Acceptor::Acceptor(std::vector<ListenSocket> listeners, ConnectionLimits limits, Take take,
                   Strangers strangers)
    : listeners_(std::move(listeners)),
      connections_(limits),
      take_(std::move(take)),
      strangers_(strangers),
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
  for (const Silent& one : std::exchange(silent_, {})) take_(one.listener, one.fd);
  for (int* fd : {&reserve_, &wake_}) {
    if (*fd >= 0) close(std::exchange(*fd, -1));
  }
}

void Acceptor::Loop() {
  std::vector<pollfd> polled = {{wake_, POLLIN, 0}};
  for (const ListenSocket& listener : listeners_) polled.push_back({listener.fd(), POLLIN, 0});
  const size_t listeners = polled.size();
  while ((polled[0].revents & POLLIN) == 0) {
    polled.resize(listeners);
    for (const Silent& one : silent_) polled.push_back({one.fd, POLLIN, 0});
    const int wait =
        silent_.empty() ? -1 : static_cast<int>(kSilence / std::chrono::milliseconds(1));
    if (poll(polled.data(), polled.size(), wait) < 0) continue;
    GreetAll(Clock::Steady().Now());
    for (size_t i = 1; i < listeners; ++i) {
      if (polled[i].revents == 0) continue;
      for (int n = 0; n < kTurn && AcceptOne(polled[i].fd); ++n) {
      }
    }
  }
}

void Acceptor::GreetAll(TimePoint now) {
  std::erase_if(silent_, [&](const Silent& one) {
    if (Greet(one)) return true;
    if (now < one.until) return false;
    take_(one.listener, one.fd);
    return true;
  });
}

bool Acceptor::Greet(const Silent& connection) {
  char first[16];
  const ssize_t size = recv(connection.fd, first, sizeof first, MSG_PEEK | MSG_DONTWAIT);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  const std::string_view stranger = size <= 0 ? "" : StrangerOf({first, static_cast<size_t>(size)});
  if (stranger.empty())
    take_(connection.listener, connection.fd);
  else
    Answer(connection, stranger);
  return true;
}

void Acceptor::Answer(const Silent& connection, std::string_view stranger) {
  // What is unread when a connection is closed resets it, and the answer is lost.
  char request[4096];
  for (int i = 0; i < 16 && recv(connection.fd, request, sizeof request, MSG_DONTWAIT) > 0; ++i) {
  }
  const std::string answer = AnswerTo(stranger);
  (void)send(connection.fd, answer.data(), answer.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  shutdown(connection.fd, SHUT_WR);
  close(connection.fd);
  const TimePoint now = Clock::Steady().Now();
  if (now < next_line_) return;
  next_line_ = now + kLineEvery;
  spdlog::info(
      "a client at {} speaks {}, and this server plain gRPC, which is HTTP/2: its connection "
      "is closed (docs/serving.md)",
      connection.host.empty() ? "a unix socket" : connection.host, std::string(stranger));
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
  if (strangers_ == Strangers::kHandOn) return take_(listener, fd);
  Silent connection = {listener, fd, host, Clock::Steady().Now() + kSilence};
  if (Greet(connection)) return;
  if (silent_.size() >= kMostSilent) return take_(listener, fd);
  silent_.push_back(std::move(connection));
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
