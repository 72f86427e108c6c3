// Compares versions with those of the last time, and logs what is new of each.
#include "server/registry/lifecycle_log.h"

#include <spdlog/spdlog.h>

#include <string>
#include <utility>

#include "server/registry/model_status.h"

namespace floe::server {
namespace {

void ReportVersion(const ModelConfig& config, const VersionStatus& now) {
  const std::string error(now.error.message());
  if (!now.error.ok() && now.state == VersionState::kEnd) {
    spdlog::error("{}: model '{}' version {} is not served: {}", config.where, config.name,
                  now.version, error);
  } else if (!now.error.ok() && now.state == VersionState::kAvailable) {
    spdlog::warn("{}: model '{}' version {}: {}", config.where, config.name, now.version, error);
  } else if (!now.error.ok() && now.state == VersionState::kStart) {
    // It has just been copied, as all new versions are.
    spdlog::info("{}: model '{}' version {} is not loaded yet: {}", config.where, config.name,
                 now.version, error);
  } else if (!now.error.ok()) {
    spdlog::warn("{}: model '{}' version {} is not served yet: {}", config.where, config.name,
                 now.version, error);
  } else if (now.state >= VersionState::kUnloading) {
    spdlog::info("model '{}' version {} is {}", config.name, now.version,
                 now.state == VersionState::kEnd ? "unloaded" : "being unloaded");
  }
}

}  // namespace

void LifecycleLog::Report(const Lifecycle& lifecycle, const std::set<std::string>& models) {
  for (const std::string& name : models) {
    const Known before = std::exchange(known_[name], {});
    const auto model = lifecycle.models().find(name);
    if (model == lifecycle.models().end() || !model->second.current) {
      known_.erase(name);
      continue;
    }
    const ModelState& state = model->second;
    const ModelConfig& config = state.current->config();
    Known& known = known_[name];
    known.scan_error = std::string(state.current->scan_error().message());
    if (!known.scan_error.empty() && known.scan_error != before.scan_error)
      spdlog::error("{}: model '{}': {}{}", config.where, name, known.scan_error,
                    !Published(state).empty() ? "; what was loaded before stays in service" : "");
    for (VersionStatus& status : Statuses(state)) {
      const auto it = before.versions.find(status.version);
      const bool same = it != before.versions.end() && it->second.state == status.state &&
                        it->second.error == status.error;
      if (!same) ReportVersion(config, status);
      known.versions[status.version] = std::move(status);
    }
  }
}

}  // namespace floe::server
