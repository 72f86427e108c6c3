#include "server/registry/publication.h"

#include <map>
#include <string>
#include <utility>

namespace floe::server {

std::shared_ptr<const ServedTable> Publication::Replace(std::shared_ptr<const ServedTable> table) {
  MutexLock lock(mutex_);
  return std::exchange(table_, std::move(table));
}

void Publication::Publish(ServedTable table) {
  std::map<std::string, bool> available;
  for (const auto& [name, entry] : table.models) available[name] = !entry.available.empty();
  const bool settled = table.settled;
  Replace(
      std::make_shared<const ServedTable>(std::move(table)));  // the old one ends without the lock
  // Whoever waited for the table can read it off the health.
  readiness_.SetModels(available);
  {
    MutexLock lock(mutex_);
    settled_ = settled;
  }
  changed_.NotifyAll();
  if (on_change_) on_change_();
}

std::shared_ptr<const ServedTable> Publication::Table() const {
  MutexLock lock(mutex_);
  return table_;
}

void Publication::AwaitSettled() const {
  MutexLock lock(mutex_);
  while (!table_->stopping && !settled_) changed_.Wait(mutex_);
}

void Publication::SetProbe(std::shared_ptr<LocalServed> probe) {
  MutexLock lock(mutex_);
  probe_ = std::move(probe);
}

std::shared_ptr<LocalServed> Publication::Probe() const {
  MutexLock lock(mutex_);
  return probe_;
}

void Publication::Stop() {
  ServedTable table = *Table();
  table.stopping = true;
  for (auto& [name, entry] : table.models) {
    entry.available.clear();
    for (VersionStatus& status : entry.statuses) status.state = VersionState::kEnd;
  }
  Replace(std::make_shared<const ServedTable>(std::move(table)));
  changed_.NotifyAll();
  const std::shared_ptr<LocalServed> probe = Probe();
  SetProbe(nullptr);
  if (probe != nullptr) probe->scheduler().Stop();
}

}  // namespace floe::server
