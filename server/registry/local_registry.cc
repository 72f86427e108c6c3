// What the daemon and RPCs ask of a registry, handed to the manager's thread or read off what is
// published.
#include "server/registry/local_registry.h"

#include <spdlog/spdlog.h>

#include <optional>
#include <utility>

#include "base/memory.h"
#include "base/status.h"

namespace floe::server {

namespace {

PlaceStats PlaceOf(LocalServed& served) {
  const ModelPlace& place = served.place();
  PlaceStats stats;
  stats.device = place.device == nullptr ? "cpu" : place.device->name();
  stats.why_cpu = place.why_cpu;
  if (place.device == nullptr) return stats;
  stats.error = place.device->CheckAlive();
  stats.islands = served.model()->islands();
  stats.device_bytes = served.model()->device_bytes();
  if (place.user != nullptr) stats.answered_by_cpu = place.user->answered_by_cpu();
  return stats;
}

}  // namespace

LocalRegistry::LocalRegistry(const std::vector<ModelConfig>& models, Options options,
                             HealthState* health)
    : Publication(health, options.lifecycle.strict_readiness, options.on_change),
      options_(std::move(options)),
      memory_(options_.lifecycle.memory_limit.In(UsableMemory())),
      manager_(models, options_, memory_, &load_watch_, this) {}

LocalRegistry::~LocalRegistry() { Stop(); }

absl::Status LocalRegistry::StartLoading() {
  MutexLock lock(stop_mutex_);
  auto probe = LoadModel(ProbeConfig(), ProbeSource(), options_.load, MemoryBudget());
  if (probe.ok()) {
    SetProbe(*std::move(probe));
  } else {
    spdlog::error("the probe's model cannot be loaded: {}", std::string(probe.status().message()));
  }
  SetAnswering(true);
  return manager_.Start();
}

absl::StatusOr<std::vector<ModelStats>> LocalRegistry::Stats(std::string_view name) const {
  const std::shared_ptr<const ServedTable> table = Table();
  if (!name.empty() && table->models.find(name) == table->models.end())
    return table->Acquire(name, {}).status();  // says which names there are
  std::vector<ModelStats> all;
  for (const auto& [model, entry] : table->models) {
    if (!name.empty() && name != model) continue;
    ModelStats stats{model, {}, entry->labels};
    for (const VersionStatus& status : entry->statuses) {
      VersionStats version;
      version.status = status;
      if (const auto load = load_watch_.Find(LoadName(model, status.version)); load.has_value()) {
        version.load_stage = load->stage;
        version.loading = options_.clock->Now() - load->start;
      }
      for (const ServedTable::Version& served : entry->available) {
        if (served.version != status.version) continue;
        version.scheduler = served.served->scheduler().Stats();
        version.place = PlaceOf(*served.served);
        version.memory_bytes = served.served->memory_bytes();
        version.file = served.served->model()->info().path;
      }
      stats.versions.push_back(std::move(version));
    }
    all.push_back(std::move(stats));
  }
  return all;
}

BackendStatus LocalRegistry::Backend() const {
  return options_.load.devices == nullptr ? BackendStatus() : options_.load.devices->Status();
}

void LocalRegistry::CheckProgress(TimePoint now) {
  for (const std::string& line : load_watch_.Slow(now)) spdlog::info("{}", line);
  manager_.CheckThreads(now);
  if (options_.load.devices != nullptr)
    for (const std::string& line : options_.load.devices->Incidents(now)) spdlog::error("{}", line);
  CheckAiling(now);
  const auto table = Table();
  for (const auto& [name, entry] : table->models) {
    for (const ServedTable::Version& version : entry->available) {
      version.served->LogIncidents(now);
      version.served->scheduler().TrimIdle(now);
    }
  }
}

void LocalRegistry::Wake() {
  manager_.Post([](Lifecycle*) {});
}

void LocalRegistry::StartReload(ReloadRequest request, ReloadDone done) {
  auto transaction = std::make_shared<Transaction>(std::move(request), std::move(done));
  if (CancelToken* const cancel = transaction->wanted.cancel.get(); cancel != nullptr)
    cancel->SetListener(transaction.get(), [this] { Wake(); });
  manager_.Post([transaction = std::move(transaction)](Lifecycle* lifecycle) {
    lifecycle->reloads().Add(transaction);
  });
}

void LocalRegistry::NoteReload(const absl::Status& status) {
  manager_.Post([status, now = options_.clock->Now()](Lifecycle* lifecycle) {
    lifecycle->NoteReload(status, "the configuration file", now);
  });
}

void LocalRegistry::StopReloading() {
  manager_.Post([](Lifecycle* lifecycle) { lifecycle->reloads().Stop(); });
}

void LocalRegistry::Stop() {
  MutexLock lock(stop_mutex_);
  if (stopped_) return;
  stopped_ = true;
  manager_.StopThreads();
  Close();
  manager_.StopVersions();
}

}  // namespace floe::server
