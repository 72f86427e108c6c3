// Transaction: one change of the configuration, from who asks for it to how it ended.
#pragma once

#include <atomic>
#include <optional>

#include "base/mutex.h"
#include "server/registry/registry.h"

namespace floe::server {

// Whoever asks waits for its end; the manager's thread does the work, and looks whether it is still
// wanted. Threading: any thread.
class Transaction {
 public:
  explicit Transaction(ReloadRequest wanted) : wanted(std::move(wanted)) {}
  // One that nobody ended goes because the server stops.
  const ReloadRequest wanted;

  // Nobody waits for it any more: it is to end with CANCELLED, unless it has ended.
  void Cancel() { cancelled_ = true; }
  bool cancelled() const { return cancelled_; }

  // The first outcome counts.
  void End(const absl::Status& outcome) {
    MutexLock lock(mutex_);
    if (!outcome_) outcome_ = outcome;
    ended_.NotifyAll();
  }
  absl::Status Await() {
    MutexLock lock(mutex_);
    while (!outcome_) ended_.Wait(mutex_);
    return *outcome_;
  }

 private:
  std::atomic<bool> cancelled_{false};
  Mutex mutex_;
  CondVar ended_;
  std::optional<absl::Status> outcome_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace floe::server
