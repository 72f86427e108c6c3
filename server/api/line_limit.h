// LineLimit: so many lines of the log each second.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/clock.h"

namespace floe::server {

// Threading: any thread.
class LineLimit {
 public:
  explicit LineLimit(int per_second) : per_second_(per_second) {}

  // Whether a line may be logged now.
  bool Take() {
    const int64_t now = Clock::Steady().Now().time_since_epoch() / std::chrono::seconds(1);
    if (second_.exchange(now) != now) lines_ = 0;
    return lines_.fetch_add(1) < per_second_;
  }

 private:
  const int per_second_;
  std::atomic<int64_t> second_{0};
  std::atomic<int> lines_{0};
};

}  // namespace floe::server
