// LocalRegistry: the configured models, loaded once at start, newest version only.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "server/health/health.h"
#include "server/registry/loader.h"

namespace floe::server {

// The model behind the daemon's own probe; not listed, and not part of anybody's readiness.
inline constexpr char kProbeModel[] = "floe.probe";

// One bad model does not stop the others. Health: "model/<name>" serves when its model is available
// and its work goes on; the overall names ("" and the services') serve when every configured model
// has become available. Threading: any thread; loading happens on threads of its own.
class LocalRegistry : public ModelRegistry {
 public:
  // `health` outlives the registry.
  LocalRegistry(std::vector<ModelConfig> models, LoadOptions options, HealthState* health);
  ~LocalRegistry() override;  // Stop()

  void StartLoading();     // once
  void WaitUntilLoaded();  // every model is available or has failed
  bool AllAvailable() const;
  size_t AvailableCount() const;  // of the configured models

  // Whether the server as a whole answers (the daemon's probe); overall health needs it besides the
  // models.
  void SetAnswering(bool answering);

  // Sets the health of models whose work does not go on (IsStuck), and of those where it does
  // again. Models that have nothing to do give back memory that they keep between requests.
  void CheckProgress(TimePoint now);

  // Waits for loads under way, lets every queue finish what it has, and refuses from then on
  // (UNAVAILABLE).
  void Stop();

  absl::StatusOr<ServedHandle> Acquire(std::string_view name,
                                       const VersionChoice& choice) const override;
  absl::StatusOr<std::vector<VersionStatus>> Status(std::string_view name,
                                                    const VersionChoice& choice) const override;
  std::vector<std::string> ModelNames() const override;
  absl::Status Reload(std::vector<ModelConfig> models, TimePoint deadline) override;
  ConfigState CurrentConfig() const override;

 private:
  struct Entry {
    ModelConfig config;  // const once loading has started
    std::string bytes;   // of a built-in model
    bool built_in = false;
    VersionStatus status;  // version 0: not known yet
    std::shared_ptr<LocalServed> served;
    bool stuck = false;
  };

  void LoadNext();
  void LoadEntry(Entry* entry);
  void SetStatus(Entry* entry, VersionState state, const absl::Status& error);
  void SetOverall(ServingStatus status);
  const Entry* Find(std::string_view name) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Unknown(std::string_view name) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckVersion(const Entry& entry, const VersionChoice& choice) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const LoadOptions options_;
  HealthState* const health_;
  mutable Mutex mutex_;
  std::map<std::string, Entry, std::less<>> entries_
      ABSL_GUARDED_BY(mutex_);  // the set of names never changes
  std::vector<Entry*> to_load_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  Mutex threads_mutex_;
  std::vector<std::thread> loaders_ ABSL_GUARDED_BY(threads_mutex_);
};

}  // namespace floe::server
