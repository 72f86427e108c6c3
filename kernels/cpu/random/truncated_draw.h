// Numbers of a normal distribution between two bounds, drawn with TensorFlow's bits.
#pragma once

#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/cpu/random/stateless_random.h"
#include "kernels/cpu/run_watch.h"

namespace floe::kernels {

// T is float or double.
template <class T>
class TruncatedDraw {
 public:
  // INVALID_ARGUMENT unless the deviation is positive and the bounds are in order and one of them
  // finite.
  static absl::StatusOr<TruncatedDraw> Make(T mean, T deviation, T least, T most) {
    if (!(deviation > T(0)) || !(least < most) || !(std::isfinite(least) || std::isfinite(most)))
      return absl::InvalidArgumentError(
          absl::StrCat("a deviation of ", deviation, " between ", least, " and ", most));
    // One-sided bounds become lower ones, and two bounds on one side of the mean positive.
    if ((std::isinf(least) && least < T(0)) || most < mean) {
      std::swap(least, most);
      deviation = -deviation;
    }
    return TruncatedDraw{mean, deviation, (least - mean) / deviation, (most - mean) / deviation};
  }

  // `count` numbers, `step` elements apart. INTERNAL where the distribution accepts nothing.
  absl::Status Fill(Philox* numbers, T* out, int64_t step, int64_t count, RunWatch* watch) const {
    const T root = std::sqrt(low * low + T(4));
    const T cutoff = T(2) * std::exp(T(0.5) + (low * (low - root)) / T(4)) / (low + root);
    constexpr auto kInside = static_cast<T>(1.3);
    Taken taken{*this, out, step, count};
    if ((low < -kInside && high >= T(0)) || (high > kInside && low <= T(0)))
      return FromNormal(numbers, &taken, watch);
    if (high - low < cutoff) return FromUniform(numbers, &taken, watch);
    return FromExponential(numbers, &taken, watch);
  }

  T mean, deviation, low, high;  // the bounds in deviations from the mean

 private:
  static constexpr int kNumbers = sizeof(T) == 8 ? 2 : 4;  // that a block gives
  static constexpr int kMostTries = 1000;

  struct Taken {
    const TruncatedDraw& draw;
    T* out;
    int64_t step, left;
    int tries = 0;

    void Take(T value) {
      *out = value * draw.deviation + draw.mean;
      out += --left == 0 ? 0 : step;
      tries = 0;
    }
  };
  static absl::Status Hopeless() {
    return absl::InternalError("the bounds leave a normal distribution next to nothing");
  }
  static void Uniform(Philox* numbers, T* out) {
    for (int i = 0; i < kNumbers; ++i) {
      if constexpr (sizeof(T) == 8)
        out[i] = Unit64(numbers);
      else
        out[i] = numbers->Unit();
    }
  }

  absl::Status FromNormal(Philox* numbers, Taken* taken, RunWatch* watch) const {
    while (taken->left > 0 && !watch->Stopped()) {
      T some[kNumbers];
      for (int i = 0; i < kNumbers; i += 2) NormalPair(numbers, some + i);
      for (int i = 0; i < kNumbers && taken->left > 0; ++i) {
        if (some[i] >= low && some[i] <= high)
          taken->Take(some[i]);
        else if (++taken->tries > kMostTries)
          return Hopeless();
      }
    }
    return absl::OkStatus();
  }

  absl::Status FromUniform(Philox* numbers, Taken* taken, RunWatch* watch) const {
    const T plus = low < T(0) ? T(0) : low * low;
    while (taken->left > 0 && !watch->Stopped()) {
      T some[kNumbers], other[kNumbers];
      Uniform(numbers, some);
      Uniform(numbers, other);
      for (int i = 0; i < kNumbers && taken->left > 0; ++i) {
        const T z = some[i] * (high - low) + low;
        if (other[i] <= std::exp((plus - z * z) / T(2)))
          taken->Take(z);
        else if (++taken->tries >= kMostTries)
          return Hopeless();
      }
    }
    return absl::OkStatus();
  }

  absl::Status FromExponential(Philox* numbers, Taken* taken, RunWatch* watch) const {
    const T alpha = (low + std::sqrt(low * low + T(4))) / T(2);
    while (taken->left > 0 && !watch->Stopped()) {
      T some[kNumbers];
      Uniform(numbers, some);
      for (int i = 0; i < kNumbers && taken->left > 0; i += 2) {
        const T z = -std::log(some[i]) / alpha + low;
        const T x = low < alpha ? alpha - z : low - alpha;
        if (some[i + 1] <= std::exp(-x * x / T(2)) && z < high)
          taken->Take(z);
        else if (++taken->tries >= kMostTries)
          return Hopeless();
      }
    }
    return absl::OkStatus();
  }
};

}  // namespace floe::kernels
