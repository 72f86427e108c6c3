// CallGate: the calls in progress of a server that may stop.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "base/mutex.h"

namespace floe::server {

// How many unary calls are in progress, and whether new ones are accepted.
// Threading: any thread.
class CallGate {
 public:
  // False once closed; otherwise Leave follows.
  bool Enter() {
    calls_.fetch_add(kOneEntered + 1);
    if (!closed_.load()) return true;
    Leave();
    return false;
  }
  void Leave() {
    if (Active(calls_.fetch_sub(1)) != 1 || !closed_.load()) return;
    MutexLock lock(mutex_);
    empty_.NotifyAll();
  }
  // How many have entered, or tried to; wraps around after 2^32.
  int64_t entered() const { return static_cast<int64_t>(calls_.load() / kOneEntered); }
  // Admits no more and waits for those inside, at most until `deadline`.
  void CloseAndWait(TimePoint deadline) {
    closed_.store(true);
    MutexLock lock(mutex_);
    while (Active(calls_.load()) != 0 && empty_.WaitUntil(mutex_, deadline)) {
    }
  }

 private:
  // Both counts in one word: those inside in its lower half.
  static constexpr uint64_t kOneEntered = uint64_t{1} << 32;
  static uint64_t Active(uint64_t calls) { return calls % kOneEntered; }

  std::atomic<uint64_t> calls_{0};
  std::atomic<bool> closed_{false};
  Mutex mutex_;  // of the condition alone
  CondVar empty_;
};

}  // namespace floe::server
