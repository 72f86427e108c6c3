#include "server/registry/local_registry.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/cpus.h"
#include "base/memory.h"
#include "base/status.h"

namespace floe::server {
namespace {

// Directories that answer are not to wait for those that do not, of which one dead mount may have
// many: a thread each, and some more. Unloading waits for requests alone, with timeout.
constexpr int kScanThreads = 64, kUnloadThreads = 64;
// Of scans and loads, until they are taken to hang, and others need not wait for their threads.
constexpr Duration kLongScan = std::chrono::seconds(5), kLongLoad = std::chrono::seconds(30);
// A load gets a tenth of the CPU of what serves when both want all of it.
constexpr int kLoadNice = 10;
// Of a process that tries a load, beyond the model: threads' stacks, and what an allocator keeps.
constexpr int64_t kTrialOverhead = int64_t{32} << 20;

double Millis(Duration d) { return std::chrono::duration<double, std::milli>(d).count(); }

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

int LoadThreads(const LifecycleConfig& config) {
  if (config.num_load_threads > 0) return static_cast<int>(config.num_load_threads);
  return FindUsableCpus().count();
}

}  // namespace

const char* VersionStateName(VersionState state) {
  switch (state) {
    case VersionState::kStart:
      return "START";
    case VersionState::kLoading:
      return "LOADING";
    case VersionState::kAvailable:
      return "AVAILABLE";
    case VersionState::kUnloading:
      return "UNLOADING";
    case VersionState::kEnd:
      return "END";
    case VersionState::kUnknown:
      break;
  }
  return "UNKNOWN";
}

LocalRegistry::LocalRegistry(const std::vector<ModelConfig>& models, Options options,
                             HealthState* health)
    : options_(std::move(options)),
      memory_(options_.lifecycle.memory_limit.In(UsableMemory())),
      readiness_(health, options_.lifecycle.strict_readiness),
      lifecycle_(models, LifecycleOptions(options_.lifecycle)),
      scans_(kScanThreads, {"scan", 0, {}}),
      loads_(LoadThreads(options_.lifecycle), {"load", kLoadNice, {}}),
      unloads_(kUnloadThreads, {"unload", 0, {}}) {
  Publish();
}

LocalRegistry::~LocalRegistry() { Stop(); }

absl::Status LocalRegistry::StartLoading() {
  MutexLock lock(stop_mutex_);
  LoadProbe();
  for (TaskThreadPool* threads : {&scans_, &loads_, &unloads_})
    FLOE_RETURN_IF_ERROR(threads->Start());
  FLOE_ASSIGN_OR_RETURN(manager_, TrySpawnThread({"manager", 0, {}}, [this] { Manage(); }));
  return absl::OkStatus();
}

void LocalRegistry::LoadProbe() {
  auto probe = LoadModel(ProbeConfig(), ProbeSource(), options_.load, MemoryBudget());
  if (!probe.ok())
    spdlog::error("the probe's model cannot be loaded: {}", std::string(probe.status().message()));
  {
    MutexLock lock(table_mutex_);
    if (probe.ok()) probe_ = *std::move(probe);
  }
  readiness_.SetAnswering(true);
}

// ---- the manager ----

void LocalRegistry::Manage() {
  while (!tasks_->closed()) {
    Advance();
    // A clock of its own does not run: Wake says when to look at it.
    const TimePoint until = options_.clock == &Clock::Steady() ? next_ : TimePoint::max();
    for (const TaskQueue::Task& task : tasks_->Take(until)) task();
  }
}

void LocalRegistry::Advance() {
  started_ |= lifecycle_.Settled();
  std::vector<Lifecycle::Ended> ended;
  const Actions actions = lifecycle_.Step(options_.clock->Now(), &ended);
  next_ = actions.next;
  EndDrains();
  if (lifecycle_.TakeChanged()) Publish();
  CarryOut(actions);
  EndReloads(ended);
}

void LocalRegistry::CarryOut(const Actions& actions) {
  // The table no longer has them: the last request that does, or this, ends the handle.
  for (const UnloadAction& action : actions.unloads) {
    loaded_[action.id].handle.reset();
    drains_[action.id] = options_.clock->Now() + options_.drain;
    next_ = std::min(next_, drains_[action.id]);
  }
  for (const ScanAction& action : actions.scans) scans_.Post([this, action] { RunScan(action); });
  for (const LoadAction& action : actions.loads)
    loads_.Post([this, action, tried = IsTried(action)] { RunLoad(action, tried); });
}

bool LocalRegistry::IsTried(const LoadAction& action) const {
  const TrialLoad which = options_.lifecycle.trial_load;
  if (which == TrialLoad::kUpdates) return options_.trial && (started_ || action.staged);
  return options_.trial && which == TrialLoad::kAlways;
}

void LocalRegistry::RunScan(const ScanAction& action) {
  auto found = options_.scan_with ? options_.scan_with(action.base_path, action.versions)
                                  : ScanVersions(action.base_path, action.versions);
  tasks_->Post([this, action, found = std::move(found)] {
    lifecycle_.Scanned(action.model, action.ticket, found, options_.clock->Now());
  });
}

int64_t LocalRegistry::RunBytes() const {
  return (memory_.limit() > 0 ? memory_.limit() : UsableMemory()) / 2;
}

// Its memory counts as long as it is there; only afterwards does the load here take any.
absl::Status LocalRegistry::Try(const LoadAction& action, LoadWatch::Load* progress,
                                LoadSource* source) {
  FLOE_ASSIGN_OR_RETURN(MemoryShare share, memory_.Take(0));
  Trial trial{*action.config,   *source, action.weights, RunBytes(), memory_.limit(),
              memory_.in_use(), {}};
  trial.limits.longest = std::chrono::seconds(options_.lifecycle.max_load_seconds);
  trial.limits.cancel = action.unwanted.get();
  trial.limits.charge = [&share](int64_t bytes) {
    return share.Resize(std::max<int64_t>(0, bytes - kTrialOverhead));
  };
  trial.limits.tell = [progress](const std::string& doing) {
    progress->Enter(absl::StrCat("trial load, ", doing));
  };
  progress->Enter("trial load");
  FLOE_ASSIGN_OR_RETURN(source->identity, options_.trial(trial));
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<LocalServed>> LocalRegistry::Load(const LoadAction& action,
                                                                 bool tried) {
  if (action.unwanted->cancelled()) return absl::CancelledError("nobody wants it any more");
  LoadSource source{action.version, action.file, ""};
  LoadWatch::Load progress(&load_watch_, LoadName(action.model, action.version),
                           options_.clock->Now());
  const TimePoint trial_start = Clock::Steady().Now();
  if (tried) FLOE_RETURN_IF_ERROR(Try(action, &progress, &source));
  if (options_.load_with) return options_.load_with(*action.config, source);
  const TimePoint start = Clock::Steady().Now();
  LoadOptions load = options_.load;
  load.progress = &progress;
  load.prepare.weights = action.weights;
  load.prepare.cancel = action.unwanted.get();
  load.prepare.run_bytes = RunBytes();
  auto loaded = LoadModel(*action.config, source, load, memory_);
  if (loaded.ok())
    spdlog::info(
        "model '{}' version {} is loaded after {:.1f} ms{}: {}, {} KiB of weights, {} KiB "
        "with its plans",
        action.model, action.version, Millis(Clock::Steady().Now() - start),
        tried ? fmt::format(" and a trial of {:.1f} ms", Millis(start - trial_start)) : "",
        action.file, (*loaded)->model()->weight_bytes() / 1024, (*loaded)->memory_bytes() / 1024);
  return loaded;
}

void LocalRegistry::RunLoad(const LoadAction& action, bool tried) {
  auto loaded = Load(action, tried);
  const bool taken = tasks_->Post([this, action, loaded] {
    std::optional<FileIdentity> identity;
    if (loaded.ok()) {
      loaded_[action.id] = {action.model, *loaded, MakeHandle(action.id, *loaded)};
      identity = (*loaded)->identity();
    }
    lifecycle_.Loaded(action.model, action.id, loaded.status(), options_.clock->Now(), identity);
  });
  if (!taken && loaded.ok()) (*loaded)->Stop();
}

// The handle's end is a task for the manager. Whatever thread drops the last copy, the model goes
// on one of the registry's: that copy lets go of it before the task is posted.
ServedHandle LocalRegistry::MakeHandle(ServableId id, const std::shared_ptr<LocalServed>& served) {
  return {served.get(), [this, id, kept = served, tasks = tasks_](ServedModel*) mutable {
            kept.reset();
            tasks->Post([this, id] { Unload(id, options_.drain); });
          }};
}

void LocalRegistry::Unload(ServableId id, Duration timeout) {
  const auto it = loaded_.find(id);
  if (it == loaded_.end()) return;
  unloads_.Post([this, id, timeout, model = it->second.model,
                 served = std::move(it->second.served)]() mutable {
    End(id, model, std::move(served), timeout);
  });
  loaded_.erase(it);
  drains_.erase(id);
}

// Versions whose handles requests have kept for too long, as those do that run on callers' threads.
void LocalRegistry::EndDrains() {
  const TimePoint now = options_.clock->Now();
  std::vector<ServableId> late;
  for (const auto& [id, until] : drains_) {
    if (until <= now) late.push_back(id);
    if (until > now) next_ = std::min(next_, until);
  }
  for (const ServableId id : late) {
    drains_.erase(id);
    Unload(id, Duration::zero());
  }
}

void LocalRegistry::End(ServableId id, const std::string& model,
                        std::shared_ptr<LocalServed> served, Duration timeout) {
  absl::Status left;
  if (!served->StopBy(Clock::Steady().Now() + timeout)) left = Abandon(std::move(served));
  served.reset();
  tasks_->Post([this, id, model, left] { lifecycle_.Unloaded(model, id, left); });
}

// It takes memory, and threads, until its runs end; nobody waits for it.
absl::Status LocalRegistry::Abandon(std::shared_ptr<LocalServed> served) {
  const ModelInfo& info = served->model()->info();
  const std::string why = absl::StrCat(
      "abandoned: after drain_timeout_seconds (",
      std::chrono::duration_cast<std::chrono::seconds>(options_.drain).count(),
      ") runs of it had not ended: ", served->scheduler().RunsUnderWay(Clock::Steady().Now()));
  spdlog::error("model '{}' version {} is {}", info.name, info.version, why);
  MutexLock lock(abandoned_mutex_);
  abandoned_.push_back(std::move(served));
  return absl::DeadlineExceededError(why);
}

void LocalRegistry::EndAbandoned() {
  MutexLock lock(abandoned_mutex_);
  for (auto it = abandoned_.begin(); it != abandoned_.end();) {
    if (!(*it)->scheduler().Idle()) {
      ++it;
      continue;
    }
    unloads_.Post([served = std::move(*it)]() mutable {
      const ModelInfo info = served->model()->info();
      served->Stop();
      served.reset();
      spdlog::info("what was left of model '{}' version {} has ended", info.name, info.version);
    });
    it = abandoned_.erase(it);
  }
}

void LocalRegistry::EndReloads(const std::vector<Lifecycle::Ended>& ended) {
  for (const Lifecycle::Ended& one : ended) {
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

// ---- what requests see ----

ServedTable LocalRegistry::MakeTable() const {
  ServedTable table;
  table.config = lifecycle_.config();
  table.settled = lifecycle_.Settled();
  for (const auto& [name, entry] : lifecycle_.models()) {
    if (!entry->current()) continue;
    const ModelConfig& config = *entry->current()->config;
    ServedTable::Entry& out = table.models[name];
    out.labels.insert(config.version_labels.begin(), config.version_labels.end());
    out.settled = entry->Settled();
    out.failed = entry->Failed();
    out.last_error = WithoutPaths(entry->LastError(), config);
    out.statuses = entry->Statuses();
    for (VersionStatus& status : out.statuses) status.error = WithoutPaths(status.error, config);
    for (const Servable* servable : entry->Published()) {
      const Loaded& loaded = loaded_.at(servable->id);
      out.available.push_back({servable->version, loaded.handle, loaded.served.get()});
    }
  }
  return table;
}

void LocalRegistry::Publish() {
  log_.Tell(lifecycle_);
  auto table = std::make_shared<const ServedTable>(MakeTable());
  std::map<std::string, bool> available;
  for (const auto& [name, entry] : table->models) available[name] = !entry.available.empty();
  std::shared_ptr<const ServedTable> old;  // ends without the lock
  {
    MutexLock lock(table_mutex_);
    old = std::exchange(table_, std::move(table));
  }
  // Whoever hears that a model is ready finds it in the table, and whoever waited for the table can
  // read it off the health.
  readiness_.SetModels(available);
  {
    MutexLock lock(table_mutex_);
    settled_ = table_->settled;
  }
  table_changed_.NotifyAll();
  if (options_.on_change) options_.on_change();
}

std::shared_ptr<const ServedTable> LocalRegistry::Table() const {
  MutexLock lock(table_mutex_);
  return table_;
}

absl::StatusOr<ServedHandle> LocalRegistry::Acquire(std::string_view name,
                                                    const VersionChoice& choice) const {
  if (name == kProbeModel) {
    MutexLock lock(table_mutex_);
    if (probe_ != nullptr) return ServedHandle(probe_);
    return absl::UnavailableError("the probe's model is not loaded");
  }
  return Table()->Acquire(name, choice);
}

absl::StatusOr<std::vector<VersionStatus>> LocalRegistry::Status(
    std::string_view name, const VersionChoice& choice) const {
  return Table()->Status(name, choice);
}

std::vector<std::string> LocalRegistry::ModelNames() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : Table()->models) names.push_back(name);
  return names;
}

ConfigState LocalRegistry::CurrentConfig() const { return Table()->config; }

void LocalRegistry::WaitUntilLoaded() {
  MutexLock lock(table_mutex_);
  while (!table_->stopping && !settled_) table_changed_.Wait(table_mutex_);
}

LocalRegistry::ModelTally LocalRegistry::Tally() const {
  const auto table = Table();
  ModelTally tally;
  tally.models = table->models.size();
  tally.settled = table->settled;
  for (const auto& [name, entry] : table->models) {
    if (!entry.available.empty()) ++tally.available;
    if (entry.failed) tally.failed.push_back(name);
  }
  return tally;
}

std::string LocalRegistry::UnderWay() const {
  std::vector<std::string> versions;
  const auto table = Table();
  for (const auto& [name, entry] : table->models)
    for (const VersionStatus& one : entry.statuses)
      if (one.state == VersionState::kUnloading ||
          (one.state == VersionState::kLoading && one.error.ok()))
        versions.push_back(absl::StrCat("model '", name, "' version ", one.version, " (",
                                        VersionStateName(one.state), ")"));
  return versions.empty() ? "looks for versions" : absl::StrJoin(versions, ", ");
}

void LocalRegistry::CheckProgress(TimePoint now) {
  for (const std::string& line : load_watch_.Slow(now)) spdlog::info("{}", line);
  (void)scans_.Relieve(now, kLongScan);
  (void)loads_.Relieve(now, kLongLoad);
  EndAbandoned();
  std::map<std::string, std::string> stuck;  // and why
  const auto table = Table();
  for (const auto& [name, entry] : table->models) {
    for (const ServedTable::Version& version : entry.available) {
      Scheduler& scheduler = version.served->scheduler();
      for (const SchedulerProgress::Run& run : scheduler.NewlyStuck(now))
        spdlog::warn(
            "model '{}' version {}: a worker has been in one run for {:.0f} s (run {}: {})", name,
            version.version, Millis(now - run.started) / 1000, run.slot, run.what);
      if (IsStuck(scheduler.Progress(), now))
        stuck[name] = "makes no progress although requests wait";
      version.served->LogIncidents(now);
      scheduler.TrimIdle(now);
    }
  }
  MutexLock lock(stuck_mutex_);
  std::set<std::string> names;
  for (const auto& [name, why] : stuck) {
    names.insert(name);
    if (stuck_.count(name) == 0)
      spdlog::error("model '{}' {}; it is reported as not serving", name, why);
  }
  for (const std::string& name : stuck_)
    if (names.count(name) == 0) spdlog::info("model '{}' makes progress again", name);
  stuck_ = names;
  readiness_.SetStuck(names);
}

// ---- changes and the end ----

void LocalRegistry::Wake() {
  tasks_->Post([] {});
}

absl::Status LocalRegistry::Reload(ReloadRequest request) {
  CancelToken* const cancel = request.cancel;
  const auto transaction = std::make_shared<Transaction>(std::move(request));
  // What is dropped, by the queue or with the registry, is dropped because the server stops.
  std::shared_ptr<Transaction> wanted(transaction.get(), [transaction](Transaction*) {
    transaction->End(absl::UnavailableError("the server is stopping"));
  });
  tasks_->Post(
      [this, wanted = std::move(wanted)]() mutable { lifecycle_.Reload(std::move(wanted)); });
  if (cancel == nullptr) return transaction->Await();
  cancel->SetListener([this, transaction] {
    transaction->Cancel();
    Wake();
  });
  absl::Status outcome = transaction->Await();
  cancel->ClearListener();
  return outcome;
}

void LocalRegistry::NoteReload(const absl::Status& status) {
  tasks_->Post([this, status] { lifecycle_.NoteReload(status); });
}

void LocalRegistry::StopReloading() {
  tasks_->Post([this] { lifecycle_.StopReloading(); });
}

// Requests that come now are refused, those that are there are finished.
void LocalRegistry::StopServing() {
  ServedTable table = *Table();
  table.stopping = true;
  for (auto& [name, entry] : table.models) {
    entry.available.clear();
    for (VersionStatus& status : entry.statuses) status.state = VersionState::kEnd;
  }
  std::shared_ptr<LocalServed> probe;
  std::shared_ptr<const ServedTable> old;
  {
    MutexLock lock(table_mutex_);
    old = std::exchange(table_, std::make_shared<const ServedTable>(std::move(table)));
    probe.swap(probe_);
  }
  table_changed_.NotifyAll();
  for (auto& [id, loaded] : loaded_) loaded.served->Stop();
  if (probe != nullptr) probe->scheduler().Stop();
  // Threads are gone: from here on the last handle may go anywhere.
  loaded_.clear();
}

void LocalRegistry::Stop() {
  MutexLock lock(stop_mutex_);
  if (stopped_) return;
  stopped_ = true;
  tasks_->Close();
  if (manager_.joinable()) manager_.join();
  lifecycle_.DropReloads();
  for (const auto& [name, entry] : lifecycle_.models())
    for (const Servable& servable : entry->servables())
      if (servable.state == VersionState::kLoading) servable.unwanted->Cancel();
  for (TaskThreadPool* threads : {&scans_, &loads_, &unloads_}) threads->Stop();
  StopServing();
}

}  // namespace floe::server
