// Publication: what is served, for requests and for the health service; replaced as a whole.
#pragma once

#include <functional>
#include <memory>

#include "base/mutex.h"
#include "server/registry/readiness.h"
#include "server/registry/registry.h"
#include "server/registry/served_table.h"

namespace floe::server {

// The readers' half of a registry. Threading: any thread; one at a time publishes.
class Publication : public ModelRegistry {
 public:
  // `health` outlives it; see Readiness. on_change(): the table may have changed.
  Publication(HealthState* health, bool strict_readiness, std::function<void()> on_change)
      : readiness_(health, strict_readiness), on_change_(std::move(on_change)) {}

  absl::StatusOr<ServedHandle> Acquire(std::string_view name,
                                       const VersionChoice& choice) const override;
  absl::StatusOr<std::vector<VersionStatus>> Status(std::string_view name,
                                                    const VersionChoice& choice) const override {
    return Table()->Status(name, choice);
  }
  ConfigState CurrentConfig() const override { return Table()->config; }

  std::shared_ptr<const ServedTable> Table() const;
  void WaitUntilLoaded() const;  // until all have settled, or Close was called

  // Whoever hears that a model is ready finds it in the table.
  void Publish(ServedTable table);
  // The model that the daemon's own probe asks; null: there is none.
  void SetProbe(std::shared_ptr<LocalServed> probe);
  // Whether the server as a whole answers (the daemon's probe); overall health needs it besides the
  // models.
  void SetAnswering(bool answering) { readiness_.SetAnswering(answering); }
  // Sets the health of models whose work does not go on (IsStuck), and of those where it does
  // again; logs what is new.
  void CheckStuck(TimePoint now);
  // Requests that come now are refused. Nothing is published afterwards.
  void Close();

 private:
  std::shared_ptr<const ServedTable> Replace(std::shared_ptr<const ServedTable> table);
  std::shared_ptr<LocalServed> Probe() const;

  Readiness readiness_;
  const std::function<void()> on_change_;
  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::shared_ptr<const ServedTable> table_ ABSL_GUARDED_BY(mutex_) =
      std::make_shared<const ServedTable>();
  std::shared_ptr<LocalServed> probe_ ABSL_GUARDED_BY(mutex_);
  bool settled_ ABSL_GUARDED_BY(mutex_) = false;  // and the health service knows
};

}  // namespace floe::server
