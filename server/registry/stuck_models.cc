#include "server/registry/stuck_models.h"

#include <spdlog/spdlog.h>

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

std::set<std::string> StuckModels::Find(const ServedTable& table, TimePoint now) {
  std::set<std::string> stuck;
  for (const auto& [name, entry] : table.models)
    for (const ServedTable::Version& version : entry.available)
      if (Stuck(name, version, now)) stuck.insert(name);
  MutexLock lock(mutex_);
  for (const std::string& name : stuck)
    if (known_.count(name) == 0)
      spdlog::error(
          "model '{}' makes no progress although requests wait; it is reported as not serving",
          name);
  for (const std::string& name : known_)
    if (stuck.count(name) == 0) spdlog::info("model '{}' makes progress again", name);
  known_ = stuck;
  return stuck;
}

}  // namespace floe::server
