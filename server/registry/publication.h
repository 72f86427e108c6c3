// Publication: the table that requests read, replaced as a whole, and the health that follows it.
#pragma once

#include <functional>
#include <memory>

#include "base/mutex.h"
#include "server/registry/readiness.h"
#include "server/registry/served_table.h"

namespace floe::server {

// Threading: any thread; one at a time publishes.
class Publication {
 public:
  // `health` outlives it. on_change(): the table may have changed.
  Publication(HealthState* health, bool strict_readiness, std::function<void()> on_change)
      : readiness_(health, strict_readiness), on_change_(std::move(on_change)) {}

  // Whoever hears that a model is ready finds it in the table.
  void Publish(ServedTable table);
  std::shared_ptr<const ServedTable> Table() const;
  void AwaitSettled() const;  // or the end
  // The model that the daemon's own probe asks; null: there is none.
  void SetProbe(std::shared_ptr<LocalServed> probe);
  std::shared_ptr<LocalServed> Probe() const;
  // Requests that come now are refused. Nothing is published afterwards.
  void Stop();
  Readiness& readiness() { return readiness_; }

 private:
  std::shared_ptr<const ServedTable> Replace(std::shared_ptr<const ServedTable> table);

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
