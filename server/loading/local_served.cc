// Ends a version's queue, and logs what it did.
#include "server/loading/local_served.h"

#include <spdlog/spdlog.h>

#include <string>

namespace floe::server {

void LocalServed::LogIncidents(TimePoint now) {
  const ModelInfo& info = model_->info();
  for (const std::string& line : incidents_.Lines(scheduler_.Counts(), now))
    spdlog::warn("model '{}' version {}: {}", info.name, info.version, line);
}

absl::Status LocalServed::CheckDevice() const {
  if (place_.device == nullptr || place_.on_error == OnDeviceError::kCpu) return absl::OkStatus();
  return place_.device->CheckAlive();
}

bool LocalServed::StopBy(TimePoint deadline) {
  if (!scheduler_.StopBy(deadline)) return false;
  const SchedulerStats stats = scheduler_.Stats();
  const ModelInfo& info = model_->info();
  if (const std::string summary = Summary(stats); !summary.empty())
    spdlog::info("model '{}' version {}: {}", info.name, info.version, summary);
  if (stats.profiles.size() < 2) return true;
  for (const ProfileStats& profile : stats.profiles)
    spdlog::info("model '{}' version {}, {}: {}", info.name, info.version, profile.name,
                 Summary(profile.batches));
  return true;
}

}  // namespace floe::server
