// A flag that a caller's departure raises. All that works for the caller may listen to it.
#pragma once

#include <atomic>
#include <functional>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "base/mutex.h"

namespace floe {

// Threading: any thread. A listener runs once, on the thread that cancels (or at once in
// SetListener when the flag is up already), and never after ClearListener has returned. It does not
// call SetListener or ClearListener.
class CancelToken {
 public:
  bool cancelled() const { return cancelled_.load(std::memory_order_acquire); }

  void Cancel() {
    MutexLock lock(mutex_);
    if (cancelled_.exchange(true)) return;
    for (const auto& [owner, listener] : listeners_) listener();
  }
  // `owner` tells listeners apart, and has one at most: this takes the place of another.
  void SetListener(const void* owner, std::function<void()> listener) {
    MutexLock lock(mutex_);
    if (cancelled_.load()) return listener();
    Drop(owner);
    listeners_.emplace_back(owner, std::move(listener));
  }
  void ClearListener(const void* owner) {
    MutexLock lock(mutex_);
    Drop(owner);
  }

 private:
  void Drop(const void* owner) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (auto it = listeners_.begin(); it != listeners_.end(); ++it) {
      if (it->first != owner) continue;
      listeners_.erase(it);
      return;
    }
  }

  std::atomic<bool> cancelled_{false};
  Mutex mutex_;
  absl::InlinedVector<std::pair<const void*, std::function<void()>>, 1> listeners_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace floe
