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
  open_[fd] = {host, port, ++counts_.accepted};
  return true;
}

bool ConnectionTable::HasRoom(const std::string& host) {
  const auto same = by_host_.find(host);
  if (limits_.max_connections_per_address > 0 && same != by_host_.end() &&
      same->second >= limits_.max_connections_per_address) {
    ++counts_.refused_address;
    return false;
  }
  if (static_cast<int64_t>(open_.size()) - leaving_ >= limits_.max_connections && !Displace(host)) {
    ++counts_.refused_total;
    return false;
  }
  return true;
}

bool ConnectionTable::Displace(const std::string& host) {
  // Those that were ended keep their descriptors for a moment. With more addresses than these, none
  // is to blame, and looking for it takes long.
  constexpr int64_t kMostLeaving = 16;
  constexpr size_t kMostAddresses = 1024;
  if (host.empty() || by_host_.size() > kMostAddresses ||
      leaving_ >= std::min(kMostLeaving, 1 + limits_.max_connections / 8))
    return false;
  const auto most = std::max_element(
      by_host_.begin(), by_host_.end(),
      [](const auto& one, const auto& other) { return one.second < other.second; });
  const auto own = by_host_.find(host);
  // With a difference, or two addresses would displace each other in turn.
  constexpr int64_t kDifference = 2;
  if (most == by_host_.end() ||
      most->second < kDifference + (own == by_host_.end() ? 0 : own->second))
    return false;
  auto youngest = open_.end();
  for (auto at = open_.begin(); at != open_.end(); ++at)
    if (at->second.host == most->first && !at->second.leaving &&
        (youngest == open_.end() || at->second.number > youngest->second.number))
      youngest = at;
  if (youngest == open_.end()) return false;
  shutdown(youngest->first, SHUT_RDWR);
  youngest->second.leaving = true;
  ++leaving_;
  ++counts_.displaced;
  return true;
}

void ConnectionTable::Remove(int fd) {
  MutexLock lock(mutex_);
  const auto found = open_.find(fd);
  if (found == open_.end()) return;
  if (const auto host = by_host_.find(found->second.host); host != by_host_.end()) {
    if (--host->second == 0) by_host_.erase(host);
  }
  if (found->second.leaving) --leaving_;
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
      "server.max_connections_per_address ({}), {} for want of file descriptors (LimitNOFILE=); {} "
      "were closed for clients of other addresses",
      counts_.refused_total, limits_.max_connections, counts_.refused_address,
      limits_.max_connections_per_address, counts_.refused_files, counts_.displaced);
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
  const int fd = Find(host, port);
  if (fd < 0) return;
  open_[fd].cut = true;
  shutdown(fd, SHUT_RDWR);
}

bool ConnectionTable::WasCut(int fd) const {
  MutexLock lock(mutex_);
  const auto found = open_.find(fd);
  return found != open_.end() && found->second.cut;
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
