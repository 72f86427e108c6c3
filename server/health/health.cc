// Keeps the states of names, and calls watchers of those that changed, one change at a time.
#include "server/health/health.h"

namespace floe::server {

void HealthState::Set(const std::map<std::string, ServingStatus>& states) {
  MutexLock notify(notify_mutex_);
  std::map<std::string, ServingStatus> changed;
  {
    MutexLock lock(mutex_);
    if (shut_down_) return;
    for (const auto& [name, status] : states) {
      const auto [it, added] = states_.emplace(name, status);
      if (!added && it->second == status) continue;
      it->second = status;
      changed.emplace(name, status);
    }
  }
  Notify(changed);
}

void HealthState::Remove(const std::string& name) {
  MutexLock notify(notify_mutex_);
  {
    MutexLock lock(mutex_);
    if (shut_down_ || states_.erase(name) == 0) return;
  }
  Notify({{name, ServingStatus::kServiceUnknown}});
}

void HealthState::Shutdown() {
  MutexLock notify(notify_mutex_);
  std::map<std::string, ServingStatus> changed;
  {
    MutexLock lock(mutex_);
    shut_down_ = true;
    for (auto& [name, status] : states_) {
      if (status == ServingStatus::kNotServing) continue;
      status = ServingStatus::kNotServing;
      changed.emplace(name, status);
    }
  }
  Notify(changed);
}

std::optional<ServingStatus> HealthState::Get(const std::string& name) const {
  MutexLock lock(mutex_);
  const auto it = states_.find(name);
  if (it == states_.end()) return std::nullopt;
  return it->second;
}

int64_t HealthState::Watch(const std::string& name, const Watcher& watcher) {
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

void HealthState::Notify(const std::map<std::string, ServingStatus>& changed) {
  for (const auto& [id, entry] : watchers_) {
    const auto it = changed.find(entry.name);
    if (it != changed.end()) entry.watcher(it->second);
  }
}

}  // namespace floe::server
