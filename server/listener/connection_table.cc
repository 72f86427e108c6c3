// The table of open connections: counts them, all and of each address.
#include "server/listener/connection_table.h"

#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <limits>

#include "server/listener/tcp_progress.h"

namespace floe::server {
namespace {

// Descriptors that are not connections': model files, logs, event queues.
constexpr int64_t kOtherFiles = 128;

int64_t ConnectionsThatFit() {
  rlimit files = {};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == RLIM_INFINITY)
    return std::numeric_limits<int64_t>::max();
  const auto most = static_cast<int64_t>(files.rlim_cur);
  return std::max(most - kOtherFiles, most / 2);
}

}  // namespace

ConnectionTable::ConnectionTable(ConnectionLimits limits) : limits_(limits) {
  const int64_t fit = ConnectionsThatFit();
  if (limits_.max_connections > fit)
    spdlog::warn(
        "server.max_connections is {}, but the limit of open files leaves room for {}: it is {} "
        "(LimitNOFILE= of the unit, ulimit -n)",
        limits_.max_connections, fit, fit);
  limits_.max_connections =
      limits_.max_connections <= 0 ? fit : std::min(limits_.max_connections, fit);
}

bool ConnectionTable::Add(int fd, const std::string& host, uint16_t port) {
  MutexLock lock(mutex_);
  if (!HasRoom(host)) return false;
  if (!host.empty()) ++by_host_[host];
  open_[fd] = {host, port};
  ++counts_.accepted;
  return true;
}

bool ConnectionTable::HasRoom(const std::string& host) {
  const auto same = by_host_.find(host);
  if (static_cast<int64_t>(open_.size()) >= limits_.max_connections) {
    ++counts_.refused_total;
    return false;
  }
  if (limits_.max_connections_per_address > 0 && same != by_host_.end() &&
      same->second >= limits_.max_connections_per_address) {
    ++counts_.refused_address;
    return false;
  }
  return true;
}

void ConnectionTable::Remove(int fd) {
  MutexLock lock(mutex_);
  const auto found = open_.find(fd);
  if (found == open_.end()) return;
  if (const auto host = by_host_.find(found->second.host); host != by_host_.end()) {
    if (--host->second == 0) by_host_.erase(host);
  }
  open_.erase(found);
  if (open_.empty()) empty_.NotifyAll();
}

void ConnectionTable::CountRefusedForFiles() {
  MutexLock lock(mutex_);
  ++counts_.refused_files;
}

void ConnectionTable::LogRefusals() {
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

void ConnectionTable::AwaitClosed(TimePoint deadline) {
  MutexLock lock(mutex_);
  while (!open_.empty() && empty_.WaitUntil(mutex_, deadline)) {
  }
}

void ConnectionTable::CloseAll(TimePoint deadline) {
  {
    MutexLock lock(mutex_);
    for (const auto& [fd, connection] : open_) shutdown(fd, SHUT_RD);
  }
  AwaitClosed(deadline);
}

// The descriptor of an open connection, or -1.
int ConnectionTable::Find(std::string_view host, uint16_t port) const {
  for (const auto& [fd, connection] : open_)
    if (connection.port == port && connection.host == host) return fd;
  return -1;
}

void ConnectionTable::Cut(std::string_view host, uint16_t port) {
  MutexLock lock(mutex_);
  if (const int fd = Find(host, port); fd >= 0) shutdown(fd, SHUT_RDWR);
}

int64_t ConnectionTable::BytesAcknowledged(std::string_view host, uint16_t port) const {
  MutexLock lock(mutex_);
  const int fd = Find(host, port);
  return fd < 0 ? 0 : server::BytesAcknowledged(fd);
}

ListenerCounts ConnectionTable::Counts() const {
  MutexLock lock(mutex_);
  ListenerCounts counts = counts_;
  counts.open = static_cast<int64_t>(open_.size());
  return counts;
}

}  // namespace floe::server
