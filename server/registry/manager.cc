// The loop of the manager's thread: asks the Lifecycle what to do, hands it to the threads that do
// it, and publishes what has changed.
#include "server/registry/manager.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_replace.h"
#include "base/cpus.h"
#include "base/status.h"
#include "server/registry/model_status.h"

namespace floe::server {
namespace {

// Directories that answer are not to wait for those that do not, of which one dead mount may have
// many: a thread each, and some more.
constexpr int kScanThreads = 64;
// Of scans, until they are taken to hang, and others need not wait for their threads.
constexpr Duration kLongScan = std::chrono::seconds(5);

// What clients may read: they are not told where on the host a model lies.
absl::Status WithoutPaths(const absl::Status& error, const ModelConfig& config) {
  if (error.ok() || config.base_path.empty()) return error;
  return absl::Status(error.code(), absl::StrReplaceAll(std::string(error.message()),
                                                        {{config.base_path, "<base_path>"}}));
}

Lifecycle::Options LifecycleOptions(const LifecycleConfig& config) {
  Lifecycle::Options options;
  options.times.poll = std::chrono::seconds(config.file_system_poll_wait_seconds);
  options.times.retry = std::chrono::microseconds(config.load_retry_interval_micros);
  options.times.max_retries = config.max_num_load_retries;
  options.allow_labels_for_unavailable = config.allow_version_labels_for_unavailable_models;
  return options;
}

ServedTable::Entry EntryOf(const ModelState& model, const VersionHost& host) {
  const ModelConfig& config = model.current->config();
  ServedTable::Entry out;
  out.labels.insert(config.version_labels.begin(), config.version_labels.end());
  out.settled = IsSettled(model);
  out.failed = HasFailed(model);
  out.last_error = WithoutPaths(LastError(model), config);
  out.statuses = Statuses(model);
  for (VersionStatus& status : out.statuses) status.error = WithoutPaths(status.error, config);
  for (const Servable* servable : Published(model)) {
    const VersionHost::Loaded& loaded = host.Get(servable->id);
    out.available.push_back({servable->version(), loaded.handle, loaded.served.get()});
  }
  return out;
}

}  // namespace

Manager::Manager(const std::vector<ModelConfig>& models, const RegistryOptions& options,
                 const MemoryBudget& memory, LoadWatch* load_watch, Publication* publication)
    : options_(options),
      publication_(*publication),
      watch_(std::chrono::seconds(options.lifecycle.file_system_poll_wait_seconds),
             options.watch_with),
      tasks_(std::make_shared<TaskThreadPool>(1, ThreadTraits{"manager", 0, {}},
                                              [this] { return Advance(); })),
      lifecycle_(models, LifecycleOptions(options.lifecycle)),
      host_(options, memory, load_watch, tasks_,
            {[this](const LoadAction& action, const absl::Status& status,
                    const std::optional<FileIdentity>& identity) {
               lifecycle_.Loaded(action.model, action.id, status, options_.clock->Now(), identity);
             },
             [this](const std::string& model, ServableId id, const absl::Status& status) {
               lifecycle_.Unloaded(model, id, status);
             }}),
      scans_(kScanThreads, {"scan", 0, {}}) {
  Publish(lifecycle_.TakeChanges());
}

absl::Status Manager::Start() {
  watch_.Start();
  FLOE_RETURN_IF_ERROR(scans_.Start());
  FLOE_RETURN_IF_ERROR(host_.Start());
  return tasks_->Start();
}

bool Manager::Post(std::function<void(Lifecycle*)> task) {
  return tasks_->Post([this, task = std::move(task)] { task(&lifecycle_); });
}

// After all that was reported, and when the time for something has come.
TimePoint Manager::Advance() {
  started_ |= lifecycle_.Settled();
  const TimePoint now = options_.clock->Now();
  // A reload may bring versions that have just been copied.
  lifecycle_.FilesChanged(watch_.TakeChanged(now, lifecycle_.reloads().any()), now);
  std::vector<Reloads::Ended> ended;
  const Work work = lifecycle_.Step(now, &ended);
  TimePoint next = std::min(work.next, host_.EndLate(now));
  if (const Lifecycle::Changes changes = lifecycle_.TakeChanges(); changes.any()) Publish(changes);
  CarryOut(work, now);
  EndReloads(ended);
  if (!work.unloads.empty()) next = std::min(next, now + options_.drain);
  next = std::min(next, watch_.next());
  // A clock of its own does not run: a task says when to look at it.
  return options_.clock == &Clock::Steady() ? next : TimePoint::max();
}

void Manager::CarryOut(const Work& work, TimePoint now) {
  for (const UnloadAction& action : work.unloads) host_.Withdraw(action.id, now);
  for (const ScanAction& action : work.scans) scans_.Post([this, action] { RunScan(action); });
  for (const LoadAction& action : work.loads) host_.Load(action, started_);
}

// It watches first: what changes later is told.
void Manager::RunScan(const ScanAction& action) {
  const bool watches = watch_.Watch(action);
  ScanResult result{options_.scan_with ? options_.scan_with(action.base_path, action.versions)
                                       : ScanVersions(action.base_path, action.versions),
                    watches};
  tasks_->Post([this, action, result = std::move(result)] {
    lifecycle_.Scanned(action.model, action.ticket, result, options_.clock->Now());
  });
}

void Manager::EndReloads(const std::vector<Reloads::Ended>& ended) {
  for (const Reloads::Ended& one : ended) {
    const std::string& who = one.transaction->wanted.who;
    if (one.status.ok()) {
      const ConfigState& config = lifecycle_.config();
      spdlog::info("configuration {} is active, by {}: {}; {} models", config.generation, who,
                   one.changes, config.models.size());
      for (const std::string& warning : CpuBudgetWarnings(config.models, FindUsableCpus()))
        spdlog::warn("{}", warning);
    } else {
      spdlog::error("{}, by {}", std::string(one.status.message()), who);
    }
    one.transaction->End(one.status);
  }
}

void Manager::Publish(const Lifecycle::Changes& changes) {
  log_.Report(lifecycle_, changes.models);
  ServedTable table = *publication_.Table();
  if (changes.config) table.config = std::make_shared<const ConfigState>(lifecycle_.config());
  table.settled = lifecycle_.Settled();
  for (const std::string& name : changes.models) {
    const auto model = lifecycle_.models().find(name);
    if (model == lifecycle_.models().end() || !model->second.current) {
      table.models.erase(name);
    } else {
      table.models[name] =
          std::make_shared<const ServedTable::Entry>(EntryOf(model->second, host_));
    }
  }
  publication_.Publish(std::move(table), changes.models);
}

void Manager::CheckThreads(TimePoint now) {
  (void)scans_.Relieve(now, kLongScan);
  host_.CheckThreads(now);
}

void Manager::StopThreads() {
  tasks_->Stop();
  lifecycle_.reloads().Drop();
  for (const auto& [name, model] : lifecycle_.models())
    for (const Servable& servable : model.servables)
      if (servable.state == VersionState::kLoading) servable.unwanted->Cancel();
  scans_.Stop();
  host_.StopThreads();
}

}  // namespace floe::server
