// Loads on threads of its own, after a trial in a process where that is asked for, and reports to
// the manager's thread. Unloads what the last request has let go of, or what is late.
#include "server/registry/version_host.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/cpus.h"
#include "base/memory.h"
#include "base/status.h"

namespace floe::server {
namespace {

// A thread each, for they wait for requests alone, with timeout.
constexpr int kUnloadThreads = 64;
// Of loads, until they are taken to hang, and others need not wait for their threads.
constexpr Duration kLongLoad = std::chrono::seconds(30);
// A load gets a tenth of the CPU of what serves when both want all of it.
constexpr int kLoadNice = 10;
// Of a process that tries a load, beyond the model: threads' stacks, and what an allocator keeps.
constexpr int64_t kTrialOverhead = int64_t{32} << 20;

double Millis(Duration d) { return std::chrono::duration<double, std::milli>(d).count(); }

int LoadThreads(const LifecycleConfig& config) {
  if (config.num_load_threads > 0) return static_cast<int>(config.num_load_threads);
  return FindUsableCpus().count();
}

bool IsTried(const RegistryOptions& options, const LoadAction& action, bool serving) {
  const TrialLoad which = options.lifecycle.trial_load;
  if (which == TrialLoad::kUpdates) return options.trial && (serving || action.staged);
  return options.trial && which == TrialLoad::kAlways;
}

int64_t RunBytes(const MemoryBudget& memory) {
  return (memory.limit() > 0 ? memory.limit() : UsableMemory()) / 2;
}

// "; 1 island on cuda:0 with 31 KiB of weights"; empty: the CPU computes it.
std::string DeviceText(const LocalServed& served) {
  if (served.place().device == nullptr) return "";
  const size_t islands = served.model()->islands().size();
  return fmt::format("; {} {} on {} with {} KiB of weights", islands,
                     islands == 1 ? "island" : "islands", served.place().device->name(),
                     served.model()->device_bytes() / 1024);
}

}  // namespace

VersionHost::VersionHost(const RegistryOptions& options, const MemoryBudget& memory,
                         LoadWatch* load_watch, std::shared_ptr<TaskThreadPool> tasks,
                         Reports reports)
    : options_(options),
      memory_(memory),
      load_watch_(*load_watch),
      tasks_(std::move(tasks)),
      reports_(std::move(reports)),
      loads_(LoadThreads(options.lifecycle), {"load", kLoadNice, {}}),
      unloads_(kUnloadThreads, {"unload", 0, {}}) {}

absl::Status VersionHost::Start() {
  FLOE_RETURN_IF_ERROR(loads_.Start());
  return unloads_.Start();
}

// ---- loading ----

// Its memory counts as long as it is there; only afterwards does the load here take any.
absl::Status VersionHost::Try(const LoadAction& action, LoadWatch::Load* progress,
                              LoadSource* source) {
  FLOE_ASSIGN_OR_RETURN(MemoryShare share, memory_.Take(0));
  Trial trial{*action.config,   *source, action.cpu_shares, RunBytes(memory_), memory_.limit(),
              memory_.in_use(), {}};
  trial.limits.longest = std::chrono::seconds(options_.lifecycle.max_load_seconds);
  trial.limits.cancel = action.unwanted.get();
  trial.limits.charge = [&share](int64_t bytes) {
    return share.Resize(std::max<int64_t>(0, bytes - kTrialOverhead));
  };
  trial.limits.report = [progress](const std::string& doing) {
    progress->Enter(absl::StrCat("trial load, ", doing));
  };
  progress->Enter("trial load");
  FLOE_ASSIGN_OR_RETURN(source->identity, options_.trial(trial));
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<LocalServed>> VersionHost::DoLoad(const LoadAction& action,
                                                                 bool tried) {
  if (action.unwanted->cancelled()) return absl::CancelledError("nobody wants it any more");
  LoadSource source{action.version, action.file, ""};
  LoadWatch::Load progress(&load_watch_, LoadName(action.model, action.version),
                           options_.clock->Now());
  const TimePoint trial_start = Clock::Steady().Now();
  const auto stamp = [&] { return StampOfVersion(action.config->base_path, action.file); };
  const uint64_t untried = tried ? stamp() : 0;
  if (tried) FLOE_RETURN_IF_ERROR(Try(action, &progress, &source));
  if (options_.load_with) return options_.load_with(*action.config, source);
  const TimePoint start = Clock::Steady().Now();
  LoadOptions load = options_.load;
  load.progress = &progress;
  load.prepare.cpu_shares = action.cpu_shares;
  load.prepare.cancel = action.unwanted.get();
  load.prepare.run_bytes = RunBytes(memory_);
  auto loaded = LoadModel(*action.config, source, load, memory_);
  // Vocabularies and recorded requests may end a process as well as graphs do.
  if (loaded.ok() && tried && stamp() != untried) {
    (*loaded)->Stop();
    return absl::AbortedError(
        absl::StrCat("files beside ", action.file, " have changed since its trial load began"));
  }
  if (loaded.ok())
    spdlog::info(
        "model '{}' version {} is loaded after {:.1f} ms{}: {}, {} KiB of weights, {} KiB "
        "with its plans{}",
        action.model, action.version, Millis(Clock::Steady().Now() - start),
        tried ? fmt::format(" and a trial of {:.1f} ms", Millis(start - trial_start)) : "",
        action.file, (*loaded)->model()->weight_bytes() / 1024, (*loaded)->memory_bytes() / 1024,
        DeviceText(**loaded));
  return loaded;
}

void VersionHost::Load(const LoadAction& action, bool serving) {
  loads_.Post([this, action, tried = IsTried(options_, action, serving)] {
    auto loaded = DoLoad(action, tried);
    const bool taken = tasks_->Post([this, action, loaded] {
      std::optional<FileIdentity> identity;
      if (loaded.ok()) {
        loaded_[action.id] = {action.model, *loaded, MakeHandle(action.id, *loaded)};
        identity = (*loaded)->identity();
      }
      reports_.loaded(action, loaded.status(), identity);
    });
    if (!taken && loaded.ok()) (*loaded)->Stop();
  });
}

// ---- unloading ----

// The handle's end is a task for the manager. Whatever thread drops the last copy, the model goes
// on one of the registry's: that copy lets go of it before the task is posted.
ServedHandle VersionHost::MakeHandle(ServableId id, const std::shared_ptr<LocalServed>& served) {
  return {served.get(), [this, id, kept = served, tasks = tasks_](ServedModel*) mutable {
            kept.reset();
            tasks->Post([this, id] { Unload(id, options_.drain); });
          }};
}

// The table no longer has it: the last request that does, or this, ends the handle.
void VersionHost::Withdraw(ServableId id, TimePoint now) {
  drains_[id] = now + options_.drain;
  loaded_[id].handle.reset();
}

TimePoint VersionHost::EndLate(TimePoint now) {
  TimePoint next = TimePoint::max();
  std::vector<ServableId> late;
  for (const auto& [id, until] : drains_) {
    if (until <= now)
      late.push_back(id);
    else
      next = std::min(next, until);
  }
  for (const ServableId id : late) {
    drains_.erase(id);
    Unload(id, Duration::zero());
  }
  return next;
}

void VersionHost::Unload(ServableId id, Duration timeout) {
  const auto it = loaded_.find(id);
  if (it == loaded_.end()) return;
  unloads_.Post([this, id, timeout, model = it->second.model,
                 served = std::move(it->second.served)]() mutable {
    absl::Status left;
    if (!served->StopBy(Clock::Steady().Now() + timeout)) left = Abandon(std::move(served));
    served.reset();
    tasks_->Post([this, id, model, left] { reports_.unloaded(model, id, left); });
  });
  loaded_.erase(it);
  drains_.erase(id);
}

// It takes memory, and threads, until its runs end; nobody waits for it.
absl::Status VersionHost::Abandon(std::shared_ptr<LocalServed> served) {
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

void VersionHost::CheckThreads(TimePoint now) {
  (void)loads_.Relieve(now, kLongLoad);
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

AbandonedWork VersionHost::Abandoned() const {
  AbandonedWork work;
  MutexLock lock(abandoned_mutex_);
  for (const auto& served : abandoned_) {
    ++work.versions;
    work.threads += static_cast<int64_t>(served->scheduler().Progress().runs.size());
  }
  return work;
}

void VersionHost::StopThreads() {
  loads_.Stop();
  unloads_.Stop();
}

// Threads are gone: from here on the last handle may go anywhere.
void VersionHost::StopVersions() {
  for (auto& [id, loaded] : loaded_) loaded.served->Stop();
  loaded_.clear();
}

}  // namespace floe::server
