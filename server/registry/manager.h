// Manager: the thread that decides about models and versions, and has done what it decided.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/task_thread_pool.h"
#include "server/registry/change_watch.h"
#include "server/registry/lifecycle.h"
#include "server/registry/lifecycle_log.h"
#include "server/registry/served_table.h"
#include "server/registry/version_host.h"

namespace floe::server {

// It holds the Lifecycle and does what that says. Scans, loads and unloads have threads of
// their own, which report by a task for the manager.
// Threading: any thread; Start and Stop one at a time.
class Manager {
 public:
  // All outlive it. `models` are valid (CheckModels).
  Manager(const std::vector<ModelConfig>& models, const RegistryOptions& options,
          const MemoryBudget& memory, LoadWatch* load_watch, Publication* publication);

  absl::Status Start();  // RESOURCE_EXHAUSTED: there is no thread for it. Once.
  // For its thread. False, and the task is dropped, after StopThreads.
  bool Post(std::function<void(Lifecycle*)> task);
  // Scans and loads that hang are given more threads for others. Called now and then.
  void CheckThreads(TimePoint now);
  AbandonedWork Abandoned() const { return host_.Abandoned(); }
  // Gives up loads under way and waits for them, and drops reloads.
  void StopThreads();
  void StopVersions() { host_.StopVersions(); }  // afterwards

 private:
  TimePoint Advance();
  void CarryOut(const Work& work, TimePoint now);
  void RunScan(const ScanAction& action);
  void EndReloads(const std::vector<Reloads::Ended>& ended);
  void Publish(const Lifecycle::Changes& changes);

  const RegistryOptions& options_;
  Publication& publication_;
  ChangeWatch watch_;
  const std::shared_ptr<TaskThreadPool> tasks_;  // of the one thread

  // The thread's; others touch them only before it starts and after it has ended.
  Lifecycle lifecycle_;
  VersionHost host_;
  LifecycleLog log_;
  bool started_ = false;  // the models of the start have settled

  TaskThreadPool scans_;
};

}  // namespace floe::server
