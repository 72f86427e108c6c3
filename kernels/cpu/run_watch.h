// Looking, between the pieces of a step that may take long, whether the run should go on.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "base/budget.h"
#include "kernels/cpu/parallel.h"

namespace floe::kernels {

// Made by the thread that runs the kernel, for one Run. Threading: Stopped() from any thread of its
// pool. A look costs about as much as reading the clock.
class RunWatch {
 public:
  // True from when the run is found cancelled or past its deadline: what is computed is thrown
  // away.
  bool Stopped() {
    if (stopped_.load(std::memory_order_relaxed)) return true;
    if (budget_ == nullptr || budget_->CheckTime().ok()) return false;
    stopped_.store(true, std::memory_order_relaxed);
    return true;
  }
  // CANCELLED or DEADLINE_EXCEEDED when it was stopped, else OK.
  absl::Status status() const {
    return stopped_.load(std::memory_order_relaxed) ? budget_->CheckTime() : absl::OkStatus();
  }

 private:
  const Budget* const budget_ = Budget::Current();
  std::atomic<bool> stopped_{false};
};

// ParallelRange that ends early, with the status of a RunWatch, when the run should not go on.
template <class Body>
absl::Status WatchedRange(ThreadPool* pool, int64_t n, int64_t grain, const Body& body) {
  // Elements of which one is worth a thread may be of any cost.
  const int64_t piece = grain <= 1 ? 1 : 16 * grain;
  RunWatch watch;
  ParallelRange(pool, n, grain, [&](int64_t begin, int64_t end) {
    for (; begin < end && !watch.Stopped(); begin += piece)
      body(begin, std::min(end, begin + piece));
  });
  return watch.status();
}

}  // namespace floe::kernels
