#include "server/health/health.h"

#include <vector>

namespace floe::server {

void HealthState::Set(const std::string& name, ServingStatus status) {
  MutexLock notify(notify_mutex_);
  {
    MutexLock lock(mutex_);
    if (shut_down_) return;
    const auto [it, added] = states_.emplace(name, status);
    if (!added && it->second == status) return;
    it->second = status;
  }
  for (const auto& [id, entry] : watchers_)
    if (entry.name == name) entry.watcher(status);
}

void HealthState::Remove(const std::string& name) {
  MutexLock notify(notify_mutex_);
  {
    MutexLock lock(mutex_);
    if (shut_down_ || states_.erase(name) == 0) return;
  }
  for (const auto& [id, entry] : watchers_)
    if (entry.name == name) entry.watcher(ServingStatus::kServiceUnknown);
}

void HealthState::Shutdown() {
  MutexLock notify(notify_mutex_);
  std::vector<std::string> changed;
  {
    MutexLock lock(mutex_);
    shut_down_ = true;
    for (auto& [name, status] : states_) {
      if (status == ServingStatus::kNotServing) continue;
      status = ServingStatus::kNotServing;
      changed.push_back(name);
    }
  }
  for (const std::string& name : changed)
    for (const auto& [id, entry] : watchers_)
      if (entry.name == name) entry.watcher(ServingStatus::kNotServing);
}

std::optional<ServingStatus> HealthState::Get(const std::string& name) const {
  MutexLock lock(mutex_);
  const auto it = states_.find(name);
  if (it == states_.end()) return std::nullopt;
  return it->second;
}

int64_t HealthState::Watch(const std::string& name, Watcher watcher) {
  MutexLock notify(notify_mutex_);
  const ServingStatus now = Get(name).value_or(ServingStatus::kServiceUnknown);
  const int64_t id = next_id_++;
  watchers_[id] = {name, watcher};
  watcher(now);
  return id;
}

void HealthState::Unwatch(int64_t id) {
  MutexLock notify(notify_mutex_);
  watchers_.erase(id);
}

}  // namespace floe::server
