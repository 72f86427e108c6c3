// RecentTimes: how long something took of late, as quantiles.
#pragma once

#include <array>
#include <cstdint>

#include "base/clock.h"

namespace floe {

// Counts durations in buckets whose bounds grow by 2^(1/8), so that a quantile is off by 5 % at
// most. It covers the last one to two minutes. Threading: the caller locks.
class RecentTimes {
 public:
  static constexpr Duration kPeriod = std::chrono::minutes(1);

  void Add(Duration took, TimePoint now);
  // The time that `part` (0 to 1) of the recent ones do not exceed; zero when there are none.
  Duration Quantile(double part, TimePoint now) const;
  uint64_t Count(TimePoint now) const;

 private:
  static constexpr int kPerOctave = 8, kOctaves = 32;  // from 1 us to 71 min
  struct Period {
    std::array<uint32_t, kPerOctave * kOctaves> counts{};
    uint64_t total = 0;
  };
  static int BucketOf(Duration took);
  // The periods of which something is recent: 2 the present and the last one, 1, or 0.
  int Recent(TimePoint now) const;

  Period periods_[2];  // the present one first
  TimePoint began_ = TimePoint::min();
};

}  // namespace floe
