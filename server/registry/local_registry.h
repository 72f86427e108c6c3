// LocalRegistry: the configured models, their versions found, loaded, swapped and unloaded by
// threads of its own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/memory_budget.h"
#include "base/mutex.h"
#include "server/loading/load_watch.h"
#include "server/registry/manager.h"
#include "server/registry/probe_model.h"

namespace floe::server {

// Requests read what is published; the Manager decides and publishes; its VersionHost loads and
// unloads. One bad model does not stop the others.
// Threading: any thread.
class LocalRegistry : public Publication {
 public:
  using Options = RegistryOptions;

  // `models` are valid (CheckModels). `health` outlives the registry.
  LocalRegistry(const std::vector<ModelConfig>& models, Options options, HealthState* health);
  ~LocalRegistry() override;  // Stop()

  // Loads the probe's model, then begins to scan for the others and to load them. Once.
  // RESOURCE_EXHAUSTED: there is no thread for it.
  absl::Status StartLoading();
  // What everything that is served holds, beside what it holds while it answers.
  const MemoryBudget& memory() const { return memory_; }

  // Called now and then. Logs which loads are slow, and what went wrong of late. Models that have
  // nothing to do give back memory that they keep between requests. See CheckAiling and
  // Manager::CheckThreads.
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

  absl::StatusOr<std::vector<ModelStats>> Stats(std::string_view name) const override;
  AbandonedWork Abandoned() const override { return manager_.Abandoned(); }
  BackendStatus Backend() const override;
  void StartReload(ReloadRequest request, ReloadDone done) override;

 private:
  const Options options_;
  const MemoryBudget memory_;
  LoadWatch load_watch_;
  Manager manager_;
  Mutex stop_mutex_;  // one Stop at a time
  bool stopped_ ABSL_GUARDED_BY(stop_mutex_) = false;
};

}  // namespace floe::server
