#include "server/listener/acceptor.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "base/status.h"
#include "base/threads.h"
#include "server/listener/socket_address.h"
#include "server/listener/tcp_progress.h"

namespace floe::server {
namespace {

// Descriptors that are not connections': model files, logs, event queues.
constexpr int64_t kOtherFiles = 128;
// Accepted from one listener before the others have their turn.
constexpr int kTurn = 64;
// The loop rests this long when not even the reserve helps.
constexpr int kRestMillis = 100;

int64_t ConnectionsThatFit() {
  rlimit files = {};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == RLIM_INFINITY)
    return std::numeric_limits<int64_t>::max();
  const auto most = static_cast<int64_t>(files.rlim_cur);
  return std::max(most - kOtherFiles, most / 2);
}

int OpenReserve() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

// The client sees a reset rather than an orderly end, which gRPC clients take for "try elsewhere".
void Reset(int fd) {
  const linger now = {1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  close(fd);
}

// What is short finds room whole.
bool IsNearlyEmpty(int fd) {
  int queued = 0, room = 0;
  socklen_t size = sizeof room;
  return ioctl(fd, SIOCOUTQ, &queued) == 0 &&
         getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, &size) == 0 && queued <= room / 8;
}

bool InodeOf(int fd, ino_t* inode) {
  struct stat info;
  if (fstat(fd, &info) != 0) return false;
  *inode = info.st_ino;
  return true;
}

}  // namespace

Acceptor::Acceptor(std::vector<ListenSocket> listeners, AcceptorLimits limits, Take take)
    : listeners_(std::move(listeners)),
      limits_(limits),
      take_(std::move(take)),
      reserve_(OpenReserve()),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  const int64_t fit = ConnectionsThatFit();
  if (limits_.max_connections > fit)
    spdlog::warn(
        "server.max_connections is {}, but the limit of open files leaves room for {}: it is {} "
        "(LimitNOFILE= of the unit, ulimit -n)",
        limits_.max_connections, fit, fit);
  limits_.max_connections =
      limits_.max_connections <= 0 ? fit : std::min(limits_.max_connections, fit);
}

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
  bool room;
  {
    MutexLock lock(mutex_);
    Forget(fd);  // its number is new, so the connection that had it is closed
    room = HasRoom(host);
    Open open = {0, host, PortOf(peer), Clock::Steady().Now()};
    if (room && InodeOf(fd, &open.inode)) {
      if (!host.empty()) ++by_host_[host];
      open_[fd] = std::move(open);
      ++counts_.accepted;
    }
  }
  if (!room) {
    Reset(fd);
    return LogRefusals();
  }
  if (!host.empty()) {
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(limits_.send_timeout);
    const auto patience = static_cast<unsigned>(millis.count());
    if (patience > 0) setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &patience, sizeof patience);
  }
  take_(listener, fd);
}

// Looks for room first among the counts and, when they leave none, in the process.
bool Acceptor::HasRoom(const std::string& host) {
  for (const bool looked : {false, true}) {
    const bool total = static_cast<int64_t>(open_.size()) < limits_.max_connections;
    const auto same = by_host_.find(host);
    const bool address = limits_.max_connections_per_address <= 0 || same == by_host_.end() ||
                         same->second < limits_.max_connections_per_address;
    if (total && address) return true;
    if (looked) ++(total ? counts_.refused_address : counts_.refused_total);
    if (!looked) ForgetClosed();
  }
  return false;
}

void Acceptor::Forget(int fd) {
  const auto found = open_.find(fd);
  if (found == open_.end()) return;
  if (const auto host = by_host_.find(found->second.host); host != by_host_.end()) {
    if (--host->second == 0) by_host_.erase(host);
  }
  open_.erase(found);
}

void Acceptor::ForgetClosed() {
  // Where refusals come fast, looking takes a small part of the loop's time.
  constexpr int kRestsPerLook = 20;
  const TimePoint start = Clock::Steady().Now();
  if (start < next_look_) return;
  std::vector<int> closed;
  for (const auto& [fd, open] : open_) {
    ino_t inode = 0;
    if (!InodeOf(fd, &inode) || inode != open.inode) closed.push_back(fd);
  }
  for (const int fd : closed) Forget(fd);
  const TimePoint end = Clock::Steady().Now();
  next_look_ = end + kRestsPerLook * (end - start);
}

// No descriptor is left: the reserve takes the connection in front and lets it go.
bool Acceptor::Shed(int listener) {
  if (reserve_ >= 0) close(std::exchange(reserve_, -1));
  const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  if (fd >= 0) {
    {
      MutexLock lock(mutex_);
      ++counts_.refused_files;
    }
    Reset(fd);
  }
  reserve_ = OpenReserve();
  LogRefusals();
  if (fd < 0) poll(nullptr, 0, kRestMillis);  // others took the reserve; do not spin
  return fd >= 0;
}

// A line now and then, however many there are.
void Acceptor::LogRefusals() {
  constexpr auto kEvery = std::chrono::seconds(10);
  const TimePoint now = Clock::Steady().Now();
  MutexLock lock(mutex_);
  if (now < next_line_) return;
  next_line_ = now + kEvery;
  spdlog::warn(
      "connections refused so far: {} beyond server.max_connections ({}), {} beyond "
      "server.max_connections_per_address ({}), {} for want of file descriptors (LimitNOFILE=)",
      counts_.refused_total, limits_.max_connections, counts_.refused_address,
      limits_.max_connections_per_address, counts_.refused_files);
}

bool Acceptor::AnyOpen() {
  next_look_ = TimePoint::min();
  ForgetClosed();
  return !open_.empty();
}

// Calls `look` until it says that all is done, or until `deadline`; at least once. Nobody says when
// a descriptor is closed, so it is looked at now and then.
void Acceptor::LookUntil(TimePoint deadline, const std::function<bool()>& look) {
  constexpr int kLookMillis = 1;
  while (!look() && Clock::Steady().Now() < deadline) poll(nullptr, 0, kLookMillis);
}

void Acceptor::Tell(std::string_view farewell, const Aside& aside, Duration settled,
                    TimePoint deadline) {
  LookUntil(deadline, [&] {
    MutexLock lock(mutex_);
    if (!AnyOpen()) return true;
    bool all = true;
    const TimePoint now = Clock::Steady().Now();
    for (auto& [fd, open] : open_) {
      if (open.told) continue;
      const auto say = [&farewell, fd = fd] {
        return IsNearlyEmpty(fd) &&
               send(fd, farewell.data(), farewell.size(), MSG_NOSIGNAL | MSG_DONTWAIT) > 0;
      };
      open.told = now - open.since > settled && aside(open.port, say);
      all = all && open.told;
    }
    return all;
  });
}

void Acceptor::AwaitClosed(TimePoint deadline) {
  LookUntil(deadline, [this] {
    MutexLock lock(mutex_);
    return !AnyOpen();
  });
}

void Acceptor::CloseConnections(TimePoint deadline) {
  LookUntil(deadline, [this] {
    MutexLock lock(mutex_);
    if (!AnyOpen()) return true;
    for (const auto& [fd, open] : open_) shutdown(fd, SHUT_RD);
    return false;
  });
}

// The descriptor of an open connection, or -1.
int Acceptor::Find(std::string_view host, uint16_t port) const {
  for (const auto& [fd, open] : open_) {
    ino_t inode = 0;
    if (open.port == port && open.host == host && InodeOf(fd, &inode) && inode == open.inode)
      return fd;
  }
  return -1;
}

void Acceptor::Cut(std::string_view host, uint16_t port) {
  MutexLock lock(mutex_);
  if (const int fd = Find(host, port); fd >= 0) shutdown(fd, SHUT_RDWR);
}

int64_t Acceptor::BytesTaken(std::string_view host, uint16_t port) const {
  MutexLock lock(mutex_);
  const int fd = Find(host, port);
  return fd < 0 ? 0 : BytesAcknowledged(fd);
}

AcceptorCounts Acceptor::Counts() {
  MutexLock lock(mutex_);
  ForgetClosed();
  AcceptorCounts counts = counts_;
  counts.open = static_cast<int64_t>(open_.size());
  return counts;
}

}  // namespace floe::server
