// A flag that a caller's departure raises, with at most one listener.
#pragma once

#include <atomic>
#include <functional>
#include <utility>

#include "base/mutex.h"

namespace floe {

// Threading: any thread. The listener runs once, on the thread that cancels (or at once in
// SetListener when the flag is up already), and never after ClearListener has returned.
class CancelToken {
 public:
  bool cancelled() const { return cancelled_.load(std::memory_order_acquire); }

  void Cancel() {
    MutexLock lock(mutex_);
    if (cancelled_.exchange(true)) return;
    if (listener_) listener_();
  }
  void SetListener(std::function<void()> listener) {
    MutexLock lock(mutex_);
    if (cancelled_.load()) {
      listener();
    } else {
      listener_ = std::move(listener);
    }
  }
  void ClearListener() {
    MutexLock lock(mutex_);
    listener_ = nullptr;
  }

 private:
  std::atomic<bool> cancelled_{false};
  Mutex mutex_;
  std::function<void()> listener_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace floe
