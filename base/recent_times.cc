#include "base/recent_times.h"

#include <algorithm>
#include <cmath>

namespace floe {

int RecentTimes::BucketOf(Duration took) {
  const double micros = std::chrono::duration<double, std::micro>(took).count();
  if (micros <= 1) return 0;
  return std::min(static_cast<int>(std::log2(micros) * kPerOctave), kPerOctave * kOctaves - 1);
}

int RecentTimes::Recent(TimePoint now) const {
  if (began_ == TimePoint::min() || now - began_ >= 2 * kPeriod) return 0;
  return now - began_ < kPeriod ? 2 : 1;
}

void RecentTimes::Add(Duration took, TimePoint now) {
  if (Recent(now) < 2) {
    periods_[1] = Recent(now) == 1 ? periods_[0] : Period();
    periods_[0] = Period();
    began_ = now;
  }
  ++periods_[0].counts[static_cast<size_t>(BucketOf(took))];
  ++periods_[0].total;
}

uint64_t RecentTimes::Count(TimePoint now) const {
  uint64_t total = 0;
  for (int i = 0; i < Recent(now); ++i) total += periods_[i].total;
  return total;
}

Duration RecentTimes::Quantile(double part, TimePoint now) const {
  const auto wanted = static_cast<uint64_t>(std::ceil(part * static_cast<double>(Count(now))));
  uint64_t seen = 0;
  for (int bucket = 0; bucket < kPerOctave * kOctaves && wanted > 0; ++bucket) {
    for (int i = 0; i < Recent(now); ++i) seen += periods_[i].counts[static_cast<size_t>(bucket)];
    if (seen >= wanted) {
      const std::chrono::duration<double, std::micro> middle(
          std::exp2((bucket + 0.5) / kPerOctave));
      return std::chrono::duration_cast<Duration>(middle);
    }
  }
  return Duration::zero();
}

}  // namespace floe
