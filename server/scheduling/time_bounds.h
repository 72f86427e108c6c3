// Bounds of the histograms of times. A time is counted once, between all bounds that any reader
// asks for; Histogram::Between gives each reader its own.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

namespace floe::server {

// To six digits, as TensorFlow Serving writes bounds.
constexpr double SixDigits(double value) {
  double unit = 1;
  while (value / unit >= 1e6) unit *= 10;
  while (value / unit < 1e5) unit /= 10;
  const auto digits = static_cast<double>(static_cast<long>((value + unit / 2) / unit));
  return unit >= 1 ? digits * unit : digits / (1 / unit);
}

// `count` bounds, each `times` the one before; as TensorFlow's exponential buckets.
template <size_t count>
constexpr std::array<double, count> ExponentialBounds(double first, double times) {
  std::array<double, count> bounds = {};
  for (double& bound : bounds) {
    bound = SixDigits(first);
    first *= times;
  }
  return bounds;
}

template <size_t count>
constexpr std::array<double, count> Divided(std::array<double, count> bounds, double by) {
  for (double& bound : bounds) bound /= by;
  return bounds;
}

template <size_t a, size_t b>
constexpr std::array<double, a + b> MergedBounds(const std::array<double, a>& one,
                                                 const std::array<double, b>& other) {
  std::array<double, a + b> merged = {};
  std::copy(other.begin(), other.end(), std::copy(one.begin(), one.end(), merged.begin()));
  std::sort(merged.begin(), merged.end());
  return merged;
}

// What floe's own metrics show, in seconds.
inline constexpr std::array<double, 18> kSecondsBounds = {
    0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
    0.05,    0.1,    0.25,    0.5,    1,     2.5,    5,     10,   30};

// What TensorFlow Serving's metrics show, in microseconds: of requests and runs, and of queues.
inline constexpr double kMicrosPerSecond = 1e6;
inline constexpr auto kTfServingMicros = ExponentialBounds<33>(10, 1.8);
inline constexpr auto kTfServingQueueMicros = ExponentialBounds<52>(100, 1.2);
inline constexpr auto kTfServingSeconds = Divided(kTfServingMicros, kMicrosPerSecond);
inline constexpr auto kTfServingQueueSeconds = Divided(kTfServingQueueMicros, kMicrosPerSecond);

// What is counted between, in seconds.
inline constexpr auto kTimeBounds = MergedBounds(kSecondsBounds, kTfServingSeconds);
inline constexpr auto kWaitBounds = MergedBounds(kSecondsBounds, kTfServingQueueSeconds);

}  // namespace floe::server
