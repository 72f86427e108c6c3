// Percentiles of any number of latencies in constant memory.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>

namespace floe::cli {

// Counts durations in log-linear buckets, the idea of Gil Tene's HdrHistogram: each power of two of
// nanoseconds is divided into kParts equal buckets, so that their width follows their value.
// A percentile is the upper end of its bucket: never below the exact one, and less than 1/kParts
// (0.2 %) above it. Count, minimum, mean and maximum are exact.
// Threading: one thread at a time.
class LatencyHistogram {
 public:
  using Nanoseconds = std::chrono::nanoseconds;
  static constexpr int64_t kParts = 512;

  // Less than nothing counts as nothing. What is longer than 36 minutes shares the last bucket.
  void Record(Nanoseconds latency);
  void Add(const LatencyHistogram& other);

  int64_t count() const { return count_; }
  // All of these are zero where nothing was recorded.
  Nanoseconds Min() const { return Nanoseconds(count_ == 0 ? 0 : min_); }
  Nanoseconds Max() const { return Nanoseconds(max_); }
  Nanoseconds Mean() const;
  // The least recorded value with `permille` of 1000 at or below it, 0 to 1000.
  Nanoseconds Percentile(int permille) const;

 private:
  static constexpr int kPartBits = 9;    // of kParts
  static constexpr int kValueBits = 41;  // 36 minutes
  static constexpr int64_t kLargest = (int64_t{1} << kValueBits) - 1;
  static constexpr size_t kBuckets = (kValueBits - kPartBits + 1) << kPartBits;

  static size_t BucketOf(int64_t value);
  static int64_t UpperEnd(size_t bucket);

  std::array<int64_t, kBuckets> counts_{};
  int64_t count_ = 0, min_ = 0, max_ = 0, sum_ = 0;
};

}  // namespace floe::cli
