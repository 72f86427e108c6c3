// What a LocalRegistry tells of its models' work.
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "server/registry/local_registry.h"

namespace floe::server {

absl::StatusOr<std::vector<ModelStats>> LocalRegistry::Stats(std::string_view name) const {
  const std::shared_ptr<const ServedTable> table = Table();
  if (!name.empty() && table->models.find(name) == table->models.end())
    return table->Acquire(name, {}).status();  // says which names there are
  std::vector<ModelStats> all;
  for (const auto& [model, entry] : table->models) {
    if (!name.empty() && name != model) continue;
    ModelStats stats{model, {}};
    for (const VersionStatus& status : entry.statuses) {
      VersionStats version;
      version.status = status;
      if (const auto load = load_watch_.Find(LoadName(model, status.version)); load.has_value()) {
        version.load_stage = load->stage;
        version.loading = options_.clock->Now() - load->start;
      }
      for (const ServedTable::Version& served : entry.available) {
        if (served.version != status.version) continue;
        version.scheduler = served.served->scheduler().Stats();
        version.memory_bytes = served.served->memory_bytes();
      }
      stats.versions.push_back(std::move(version));
    }
    all.push_back(std::move(stats));
  }
  return all;
}

}  // namespace floe::server
