// The arithmetic of buckets whose width doubles with each power of two.
#include "cli/latency_histogram.h"

#include <algorithm>
#include <bit>

namespace floe::cli {

// The first 2 * kParts buckets are a nanosecond wide. Each later power of two fills kParts more:
// value >> shift is in [kParts, 2 * kParts).
size_t LatencyHistogram::BucketOf(int64_t value) {
  const int width = std::bit_width(static_cast<uint64_t>(value));
  const int shift = std::max(width - kPartBits - 1, 0);
  return static_cast<size_t>((static_cast<int64_t>(shift) << kPartBits) + (value >> shift));
}

int64_t LatencyHistogram::UpperEnd(size_t bucket) {
  const int64_t place = static_cast<int64_t>(bucket);
  if (place < 2 * kParts) return place;
  const int64_t shift = (place >> kPartBits) - 1;
  return ((place - (shift << kPartBits) + 1) << shift) - 1;
}

void LatencyHistogram::Record(Nanoseconds latency) {
  const int64_t value = std::max<int64_t>(latency.count(), 0);
  ++counts_[BucketOf(std::min(value, kLargest))];
  min_ = count_ == 0 ? value : std::min(min_, value);
  max_ = std::max(max_, value);
  sum_ += value;
  ++count_;
}

void LatencyHistogram::Add(const LatencyHistogram& other) {
  if (other.count_ == 0) return;
  for (size_t i = 0; i < kBuckets; ++i) counts_[i] += other.counts_[i];
  min_ = count_ == 0 ? other.min_ : std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
  sum_ += other.sum_;
  count_ += other.count_;
}

LatencyHistogram::Nanoseconds LatencyHistogram::Mean() const {
  return Nanoseconds(count_ == 0 ? 0 : sum_ / count_);
}

LatencyHistogram::Nanoseconds LatencyHistogram::Percentile(int permille) const {
  // Of whole numbers: 99.9 % of 1000 is 999 and no more.
  const int64_t rank = std::max<int64_t>((count_ * permille + 999) / 1000, 1);
  int64_t seen = 0;
  for (size_t bucket = 0; bucket + 1 < kBuckets; ++bucket) {
    seen += counts_[bucket];
    if (seen >= rank) return Nanoseconds(std::min(UpperEnd(bucket), max_));
  }
  return Nanoseconds(max_);
}

}  // namespace floe::cli
