// LocalRegistry: the configured models, their versions found, loaded, swapped and unloaded by
// threads of its own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/memory_budget.h"
#include "base/mutex.h"
#include "server/registry/load_watch.h"
#include "server/registry/manager.h"
#include "server/registry/probe_model.h"
#include "server/registry/publication.h"
#include "server/registry/registry_options.h"
#include "server/registry/stuck_models.h"

namespace floe::server {

// Requests read the published ServedTable; the Manager decides and publishes; its VersionHost loads
// and unloads. One bad model does not stop the others. Health: see Readiness.
// Threading: any thread.
class LocalRegistry : public ModelRegistry {
 public:
  using Options = RegistryOptions;

  // `models` are valid (CheckModels). `health` outlives the registry.
  LocalRegistry(const std::vector<ModelConfig>& models, Options options, HealthState* health);
  ~LocalRegistry() override;  // Stop()

  // Loads the probe's model, then begins to look for the others and to load them. Once.
  // RESOURCE_EXHAUSTED: there is no thread for it.
  absl::Status StartLoading();
  // Until all have settled, or Stop was called.
  void WaitUntilLoaded() { publication_.AwaitSettled(); }
  std::shared_ptr<const ServedTable> Table() const { return publication_.Table(); }
  // What everything that is served holds, beside what it holds while it answers.
  const MemoryBudget& memory() const { return memory_; }

  // Whether the server as a whole answers (the daemon's probe); overall health needs it besides the
  // models.
  void SetAnswering(bool answering) { publication_.readiness().SetAnswering(answering); }

  // Called now and then. Sets the health of models whose work does not go on (IsStuck), and of
  // those where it does again. Logs which loads are slow, and what went wrong of late. Models that
  // have nothing to do give back memory that they keep between requests. See Manager::CheckThreads.
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
  absl::StatusOr<std::vector<ModelStats>> Stats(std::string_view name) const override;
  AbandonedWork Abandoned() const override { return manager_.Abandoned(); }
  absl::Status Reload(ReloadRequest request) override;
  ConfigState CurrentConfig() const override;

 private:
  const Options options_;
  const MemoryBudget memory_;
  LoadWatch load_watch_;
  Publication publication_;
  Manager manager_;
  StuckModels stuck_;
  Mutex stop_mutex_;  // one Stop at a time
  bool stopped_ ABSL_GUARDED_BY(stop_mutex_) = false;
};

}  // namespace floe::server
