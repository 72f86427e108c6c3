// The table of open connections: counts them per address, and finds closed ones by their inodes.
#include "server/listener/connection_table.h"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

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

bool InodeOf(int fd, ino_t* inode) {
  struct stat info;
  if (fstat(fd, &info) != 0) return false;
  *inode = info.st_ino;
  return true;
}

bool IsStill(int fd, ino_t expected) {
  ino_t inode = 0;
  return InodeOf(fd, &inode) && inode == expected;
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
  Remove(fd);  // its number is new, so the connection that had it is closed
  if (!HasRoom(host)) return false;
  Connection added = {0, host, port};
  if (!InodeOf(fd, &added.inode)) return true;
  if (!host.empty()) ++by_host_[host];
  open_[fd] = std::move(added);
  ++counts_.accepted;
  return true;
}

// Asks the counts first. When they leave no room, it removes closed connections and asks again.
bool ConnectionTable::HasRoom(const std::string& host) {
  for (const bool scanned : {false, true}) {
    const bool total = static_cast<int64_t>(open_.size()) < limits_.max_connections;
    const auto same = by_host_.find(host);
    const bool address = limits_.max_connections_per_address <= 0 || same == by_host_.end() ||
                         same->second < limits_.max_connections_per_address;
    if (total && address) return true;
    if (scanned) ++(total ? counts_.refused_address : counts_.refused_total);
    if (!scanned) RemoveClosed();
  }
  return false;
}

void ConnectionTable::Remove(int fd) {
  const auto found = open_.find(fd);
  if (found == open_.end()) return;
  if (const auto host = by_host_.find(found->second.host); host != by_host_.end()) {
    if (--host->second == 0) by_host_.erase(host);
  }
  open_.erase(found);
}

void ConnectionTable::RemoveClosed() {
  // While refusals come fast, scans take a small part of the accept loop's time.
  constexpr int kRestsPerScan = 20;
  const TimePoint start = Clock::Steady().Now();
  if (start < next_scan_) return;
  std::vector<int> closed;
  for (const auto& [fd, connection] : open_)
    if (!IsStill(fd, connection.inode)) closed.push_back(fd);
  for (const int fd : closed) Remove(fd);
  const TimePoint end = Clock::Steady().Now();
  next_scan_ = end + kRestsPerScan * (end - start);
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

// Nobody reports that a descriptor is closed, so it polls.
void ConnectionTable::VisitUntil(TimePoint deadline,
                                 const std::function<bool(int fd, Connection*)>& visit) {
  constexpr int kPollMillis = 1;
  for (;;) {
    {
      MutexLock lock(mutex_);
      next_scan_ = TimePoint::min();
      RemoveClosed();
      bool all = true;
      for (auto& [fd, connection] : open_) all = visit(fd, &connection) && all;
      if (all) return;
    }
    if (Clock::Steady().Now() >= deadline) return;
    poll(nullptr, 0, kPollMillis);
  }
}

void ConnectionTable::AwaitClosed(TimePoint deadline) {
  VisitUntil(deadline, [](int, Connection*) { return false; });
}

void ConnectionTable::CloseAll(TimePoint deadline) {
  VisitUntil(deadline, [](int fd, Connection*) {
    shutdown(fd, SHUT_RD);
    return false;
  });
}

// The descriptor of an open connection, or -1.
int ConnectionTable::Find(std::string_view host, uint16_t port) const {
  for (const auto& [fd, connection] : open_)
    if (connection.port == port && connection.host == host && IsStill(fd, connection.inode))
      return fd;
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

ListenerCounts ConnectionTable::Counts() {
  MutexLock lock(mutex_);
  RemoveClosed();
  ListenerCounts counts = counts_;
  counts.open = static_cast<int64_t>(open_.size());
  return counts;
}

}  // namespace floe::server
