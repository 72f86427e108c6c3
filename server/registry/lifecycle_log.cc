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
  } else if (!now.error.ok()) {
    spdlog::warn("{}: model '{}' version {} is not served yet: {}", config.where, config.name,
                 now.version, error);
  } else if (now.state >= VersionState::kUnloading) {
    spdlog::info("model '{}' version {} is {}", config.name, now.version,
                 now.state == VersionState::kEnd ? "unloaded" : "being unloaded");
  }
}

}  // namespace

void LifecycleLog::Report(const Lifecycle& lifecycle) {
  std::map<std::string, Known> now;
  for (const auto& [name, model] : lifecycle.models()) {
    if (!model.current) continue;
    const ModelConfig& config = model.current->config();
    const Known& before = known_[name];
    Known& known = now[name];
    known.scan_error = std::string(model.current->scan_error().message());
    if (!known.scan_error.empty() && known.scan_error != before.scan_error)
      spdlog::error("{}: model '{}': {}{}", config.where, name, known.scan_error,
                    !Published(model).empty() ? "; what was loaded before stays in service" : "");
    for (VersionStatus& status : Statuses(model)) {
      const auto it = before.versions.find(status.version);
      const bool same = it != before.versions.end() && it->second.state == status.state &&
                        it->second.error == status.error;
      if (!same) ReportVersion(config, status);
      known.versions[status.version] = std::move(status);
    }
  }
  known_ = std::move(now);
}

}  // namespace floe::server
