// Keeps the table that requests read, and has health follow it: first the table changes, then the
// health of its models.
#include "server/registry/publication.h"

#include <spdlog/spdlog.h>

#include <map>
#include <set>
#include <string>
#include <utility>

#include "server/registry/probe_model.h"

namespace floe::server {
namespace {

bool Stuck(const std::string& name, const ServedTable::Version& version, TimePoint now) {
  Scheduler& scheduler = version.served->scheduler();
  for (const SchedulerProgress::Run& run : scheduler.NewlyStuck(now))
    spdlog::warn("model '{}' version {}: a worker has been in one run for {:.0f} s (run {}: {})",
                 name, version.version, std::chrono::duration<double>(now - run.started).count(),
                 run.slot, run.what);
  return IsStuck(scheduler.Progress(), now);
}

}  // namespace

absl::StatusOr<ServedHandle> Publication::Acquire(std::string_view name,
                                                  const VersionChoice& choice) const {
  if (name != kProbeModel) return Table()->Acquire(name, choice);
  if (auto probe = Probe(); probe != nullptr) return ServedHandle(std::move(probe));
  return absl::UnavailableError("the probe's model is not loaded");
}

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

void Publication::WaitUntilLoaded() const {
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

void Publication::CheckStuck(TimePoint now) {
  std::set<std::string> stuck;
  const std::shared_ptr<const ServedTable> table = Table();
  for (const auto& [name, entry] : table->models)
    for (const ServedTable::Version& version : entry.available)
      if (Stuck(name, version, now)) stuck.insert(name);
  readiness_.SetStuck(stuck);
}

void Publication::Close() {
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
