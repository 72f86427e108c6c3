// VersionHost: loads versions, holds what was loaded, and unloads it, on threads of its own.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/memory_budget.h"
#include "base/mutex.h"
#include "base/task_thread_pool.h"
#include "server/loading/load_watch.h"
#include "server/loading/loader.h"
#include "server/registry/change_watch.h"
#include "server/registry/model_events.h"
#include "server/registry/version_scan.h"

namespace floe::server {

// What a LocalRegistry is made with.
struct RegistryOptions {
  LoadOptions load;
  LifecycleConfig lifecycle;
  const Clock* clock = &Clock::Steady();  // outlives the registry; another one: see Wake
  LoadFunction load_with;                 // empty: LoadModel
  ScanFunction scan_with;                 // empty: ScanVersions
  WatcherFunction watch_with;             // empty: FileWatcher::Create
  TrialFunction trial;  // of what lifecycle.trial_load says; empty: nothing is tried
  // How long the end of a version waits for its requests and runs.
  Duration drain = std::chrono::seconds(30);
  std::function<void()>
      on_change;  // the table may have changed; on any thread, and comes back soon
};

// A version that is withdrawn is unloaded when the last request that found it has handed its work
// over, or after the options' drain.
// Threading: the manager's thread, which also takes the tasks; CheckThreads and Abandoned any
// thread.
class VersionHost {
 public:
  // A loaded version, and the handle that requests get copies of; the end of its last copy is told
  // to the manager.
  struct Loaded {
    std::string model;
    std::shared_ptr<LocalServed> served;
    ServedHandle handle;
  };
  // Are called on the manager's thread.
  struct Reports {
    std::function<void(const LoadAction&, const absl::Status&, const std::optional<FileIdentity>&)>
        loaded;
    std::function<void(const std::string& model, ServableId, const absl::Status&)> unloaded;
  };

  // All outlive it.
  VersionHost(const RegistryOptions& options, const MemoryBudget& memory, LoadWatch* load_watch,
              std::shared_ptr<TaskThreadPool> tasks, Reports reports);

  absl::Status Start();  // RESOURCE_EXHAUSTED: there is no thread for it. Once.
  // `serving`: something may answer by now, so that a load that ends the process would hurt.
  void Load(const LoadAction& action, bool serving);
  void Withdraw(ServableId id, TimePoint now);
  // Unloads what requests have kept for too long, as those do that run on callers' threads. When to
  // ask again.
  TimePoint EndLate(TimePoint now);
  const Loaded& Get(ServableId id) const { return loaded_.at(id); }

  // Loads that hang are given more threads for others, and what is left of versions that were
  // abandoned ends once it can.
  void CheckThreads(TimePoint now);
  AbandonedWork Abandoned() const;
  void StopThreads();   // waits for loads, whose tokens were raised
  void StopVersions();  // afterwards: lets every queue finish what it has

 private:
  absl::Status Try(const LoadAction& action, LoadWatch::Load* progress, LoadSource* source);
  absl::StatusOr<std::shared_ptr<LocalServed>> DoLoad(const LoadAction& action, bool tried);
  ServedHandle MakeHandle(ServableId id, const std::shared_ptr<LocalServed>& served);
  void Unload(ServableId id, Duration timeout);
  absl::Status Abandon(std::shared_ptr<LocalServed> served);

  const RegistryOptions& options_;
  const MemoryBudget& memory_;
  LoadWatch& load_watch_;
  const std::shared_ptr<TaskThreadPool> tasks_;
  const Reports reports_;
  std::map<ServableId, Loaded> loaded_;
  std::map<ServableId, TimePoint> drains_;  // of those that requests still hold: until when
  mutable Mutex abandoned_mutex_;
  std::list<std::shared_ptr<LocalServed>> abandoned_ ABSL_GUARDED_BY(abandoned_mutex_);
  TaskThreadPool loads_, unloads_;
};

}  // namespace floe::server
