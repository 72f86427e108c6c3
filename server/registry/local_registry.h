// LocalRegistry: the configured models, their versions found, loaded, swapped and unloaded by
// threads of its own.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/memory_budget.h"
#include "base/mutex.h"
#include "server/registry/lifecycle.h"
#include "server/registry/lifecycle_log.h"
#include "server/registry/load_watch.h"
#include "server/registry/loader.h"
#include "server/registry/probe_model.h"
#include "server/registry/readiness.h"
#include "server/registry/served_table.h"
#include "server/registry/task_queue.h"
#include "server/registry/task_thread_pool.h"
#include "server/registry/trial.h"

namespace floe::server {

// One thread, the manager, holds the Lifecycle and does what it says; looking, loading and
// unloading have threads of their own, and tell the manager when they are done. Requests read a
// ServedTable. A version that leaves the table is unloaded when the last request that found it
// there has handed its work over. One bad model does not stop the others. Health: see Readiness.
// Threading: any thread.
class LocalRegistry : public ModelRegistry {
 public:
  struct Options {
    LoadOptions load;
    LifecycleConfig lifecycle;
    const Clock* clock = &Clock::Steady();  // outlives the registry; another one: see Wake
    LoadFunction load_with;                 // empty: LoadModel
    ScanFunction scan_with;                 // empty: ScanVersions
    TrialFunction trial;  // of what lifecycle.trial_load says; empty: nothing is tried
    // How long the end of a version waits for its requests and runs.
    Duration drain = std::chrono::seconds(30);
    std::function<void()> on_change;  // Tally may have changed; on any thread, and comes back soon
  };
  // How far the configured models are.
  struct ModelTally {
    size_t models = 0, available = 0;
    bool settled = false;             // all are: ModelEntry::Settled
    std::vector<std::string> failed;  // names: ModelEntry::Failed
  };

  // `models` are valid (CheckModels). `health` outlives the registry.
  LocalRegistry(const std::vector<ModelConfig>& models, Options options, HealthState* health);
  ~LocalRegistry() override;  // Stop()

  // Loads the probe's model, then begins to look for the others and to load them. Once.
  // RESOURCE_EXHAUSTED: there is no thread for it.
  absl::Status StartLoading();
  void WaitUntilLoaded();  // until all have settled, or Stop was called
  ModelTally Tally() const;
  // What Stop would wait for, such as "model 'm' version 2 (LOADING)".
  std::string UnderWay() const;
  // What everything that is served holds, beside what it holds while it answers.
  const MemoryBudget& memory() const { return memory_; }
  int64_t memory_in_use() const { return memory_.in_use(); }

  // Whether the server as a whole answers (the daemon's probe); overall health needs it besides the
  // models.
  void SetAnswering(bool answering) { readiness_.SetAnswering(answering); }

  // Sets the health of models whose work does not go on (IsStuck), and of those where it does
  // again. Logs which loads are slow, and how far they are. Models that have nothing to do give
  // back memory that they keep between requests. Looks and loads that hang are given more threads
  // for others, and what is left of versions that were abandoned ends once it can.
  void CheckProgress(TimePoint now);

  // A change that does not get as far as models: shown as the last error. OK: there is none any
  // more.
  void NoteReload(const absl::Status& status);

  // The server begins to stop: reloads that have not ended, and all that come now, are answered
  // with UNAVAILABLE.
  void StopReloading();

  // The time of a clock that is not the steady one has advanced.
  void Wake();

  // Gives up loads under way and waits for them, lets every queue finish what it has, and refuses
  // from then on (UNAVAILABLE).
  void Stop();

  absl::StatusOr<ServedHandle> Acquire(std::string_view name,
                                       const VersionChoice& choice) const override;
  absl::StatusOr<std::vector<VersionStatus>> Status(std::string_view name,
                                                    const VersionChoice& choice) const override;
  std::vector<std::string> ModelNames() const override;
  absl::StatusOr<std::vector<ModelStats>> Stats(std::string_view name) const override;
  absl::Status Reload(ReloadRequest request) override;
  ConfigState CurrentConfig() const override;

 private:
  // What was loaded, and the handle that requests get copies of; the end of its last copy is told
  // to the manager.
  struct Loaded {
    std::string model;
    std::shared_ptr<LocalServed> served;
    ServedHandle handle;
  };

  std::shared_ptr<const ServedTable> Table() const;
  void LoadProbe();

  // On the manager's thread.
  void Manage();
  void Advance();
  void CarryOut(const Actions& actions);
  bool IsTried(const LoadAction& action) const;
  void Unload(ServableId id, Duration timeout);
  void EndDrains();
  void Publish();
  ServedTable MakeTable() const;
  void EndReloads(const std::vector<Lifecycle::Ended>& ended);

  // On threads for them.
  void RunScan(const ScanAction& action);
  void RunLoad(const LoadAction& action, bool tried);
  absl::StatusOr<std::shared_ptr<LocalServed>> Load(const LoadAction& action, bool tried);
  absl::Status Try(const LoadAction& action, LoadWatch::Load* progress, LoadSource* source);
  int64_t RunBytes() const;

  void End(ServableId id, const std::string& model, std::shared_ptr<LocalServed> served,
           Duration timeout);
  absl::Status Abandon(std::shared_ptr<LocalServed> served);
  void EndAbandoned();

  ServedHandle MakeHandle(ServableId id, const std::shared_ptr<LocalServed>& served);
  void StopServing();

  const Options options_;
  const MemoryBudget memory_;
  LoadWatch load_watch_;
  Readiness readiness_;
  const std::shared_ptr<TaskQueue> tasks_ = std::make_shared<TaskQueue>();

  // The manager's; others touch them only before it starts and after it has ended.
  Lifecycle lifecycle_;
  std::map<ServableId, Loaded> loaded_;
  std::map<ServableId, TimePoint> drains_;  // of those that requests still hold: until when
  LifecycleLog log_;
  TimePoint next_ = TimePoint::max();
  bool started_ = false;  // the models of the start have settled

  mutable Mutex table_mutex_;
  CondVar table_changed_;
  std::shared_ptr<const ServedTable> table_ ABSL_GUARDED_BY(table_mutex_);
  std::shared_ptr<LocalServed> probe_ ABSL_GUARDED_BY(table_mutex_);
  bool settled_ ABSL_GUARDED_BY(table_mutex_) = false;  // and the health service knows

  Mutex stuck_mutex_;
  std::set<std::string> stuck_ ABSL_GUARDED_BY(stuck_mutex_);

  Mutex abandoned_mutex_;
  std::list<std::shared_ptr<LocalServed>> abandoned_ ABSL_GUARDED_BY(abandoned_mutex_);

  Mutex stop_mutex_;  // one Stop at a time
  bool stopped_ ABSL_GUARDED_BY(stop_mutex_) = false;
  TaskThreadPool scans_, loads_, unloads_;
  std::thread manager_ ABSL_GUARDED_BY(stop_mutex_);
};

}  // namespace floe::server
