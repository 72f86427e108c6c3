// Histogram: how many values lay between fixed bounds, and their sum, since the start.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace floe {

// The bucket of a value: the first bound that is not below it, or bounds.size().
inline size_t BucketOf(absl::Span<const double> bounds, double value) {
  return static_cast<size_t>(std::lower_bound(bounds.begin(), bounds.end(), value) -
                             bounds.begin());
}

// Threading: the caller locks.
class Histogram {
 public:
  // `bounds`: ascending, at least one; they outlive this. A value that equals a bound counts below
  // it.
  explicit Histogram(absl::Span<const double> bounds)
      : bounds_(bounds), counts_(bounds.size() + 1) {}

  void Add(double value) {
    ++counts_[BucketOf(bounds_, value)];
    sum_ += value;
  }
  // What was counted elsewhere, in buckets of the same bounds.
  void AddBucket(size_t bucket, uint64_t count) { counts_[bucket] += count; }
  void AddSum(double sum) { sum_ += sum; }
  // What another one with the same bounds has.
  void Add(const Histogram& other) {
    for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
    sum_ += other.sum_;
  }

  // The same values between `bounds`, each of which is one of this one's.
  Histogram Between(absl::Span<const double> bounds) const {
    Histogram coarse(bounds);
    for (size_t i = 0; i < counts_.size(); ++i)
      coarse.counts_[i < bounds_.size() ? BucketOf(bounds, bounds_[i]) : bounds.size()] +=
          counts_[i];
    coarse.sum_ = sum_;
    return coarse;
  }
  // The same values in another unit, which has `times` of the old one's. `bounds` are this one's
  // in that unit.
  Histogram InUnit(absl::Span<const double> bounds, double times) const {
    Histogram same = *this;
    same.bounds_ = bounds;
    same.sum_ *= times;
    return same;
  }

  absl::Span<const double> bounds() const { return bounds_; }
  // By bucket: up to bounds()[i], and one more for what is above all bounds.
  absl::Span<const uint64_t> counts() const { return counts_; }
  double sum() const { return sum_; }
  uint64_t count() const {
    uint64_t all = 0;
    for (const uint64_t count : counts_) all += count;
    return all;
  }

 private:
  absl::Span<const double> bounds_;
  std::vector<uint64_t> counts_;
  double sum_ = 0;
};

}  // namespace floe
