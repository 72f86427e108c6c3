// Quantised integers and the numbers they stand for, with TensorFlow's two ways of rounding: one in
// float64, used for single values, and one in float32, used for tensors.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/cpu/dtypes.h"

namespace floe::kernels {

using QuantizedInts = TypeList<int8_t, uint8_t, int16_t, uint16_t, int32_t>;

struct QuantizedRange {
  float low = 0, high = 0;
};

// Inputs `first` and `first + 1` of one element each; INVALID_ARGUMENT otherwise, and for NaN.
inline absl::StatusOr<QuantizedRange> RangeOf(const KernelContext& ctx, int first) {
  for (int i = first; i < first + 2; ++i) {
    if (ctx.in(i).elements() != 1)
      return absl::InvalidArgumentError(absl::StrCat(
          "input ", i, ", the bound of a range, has shape ", ctx.in(i).shape.ToString()));
  }
  const QuantizedRange range{*ctx.in(first).as<float>(), *ctx.in(first + 1).as<float>()};
  if (std::isnan(range.low) || std::isnan(range.high))
    return absl::InvalidArgumentError(absl::StrCat("a range from ", range.low, " to ", range.high));
  return range;
}

inline void GiveRange(const KernelContext& ctx, int first, QuantizedRange range) {
  if (ctx.out(first).data != nullptr) *ctx.out(first).as<float>() = range.low;
  if (ctx.out(first + 1).data != nullptr) *ctx.out(first + 1).as<float>() = range.high;
}

template <class T>
constexpr int64_t kStepCount = int64_t{1} << (8 * sizeof(T));
template <class T>
constexpr int64_t kLowest = std::is_signed_v<T> ? -(kStepCount<T> / 2) : 0;
template <class T>
constexpr int64_t kHighest = kLowest<T> + kStepCount<T> - 1;
template <class T>
constexpr auto kSteps = static_cast<double>(kStepCount<T>);

// Clamped to what the sum of a few fits into; NaN counts as the least.
inline int64_t WholeNumber(double x) {
  constexpr double kMost = 0x1p61;
  return std::isnan(x) ? static_cast<int64_t>(-kMost)
                       : static_cast<int64_t>(std::clamp(x, -kMost, kMost));
}

// Where `value` falls on T's grid over the range, which may be past T.
template <class T>
int64_t GridPlace(float value, QuantizedRange range) {
  if (range.low == range.high) return kLowest<T>;
  const double width = (range.high - range.low) * (kSteps<T> / (kSteps<T> - 1.0)),
               scale = kSteps<T> / width;
  return WholeNumber(std::round(value * scale)) - WholeNumber(std::round(range.low * scale)) +
         kLowest<T>;
}
template <class T>
T Quantized(float value, QuantizedRange range) {
  return static_cast<T>(std::clamp(GridPlace<T>(value, range), kLowest<T>, kHighest<T>));
}
template <class T>
float Dequantized(T value, QuantizedRange range) {
  if (range.low == range.high) return range.low;
  const double width = (range.high - range.low) * (kSteps<T> / (kSteps<T> - 1.0)),
               scale = width / kSteps<T>;
  const auto step = static_cast<float>(scale);
  const double low = std::round(range.low / step) * step;
  return static_cast<float>(low +
                            (static_cast<double>(value) - static_cast<double>(kLowest<T>)) * scale);
}

// The same in float32: the constants once, then one number at a time.
template <class T>
class TensorDequantizer {
 public:
  explicit TensorDequantizer(QuantizedRange range)
      : scale_(static_cast<float>((range.high - range.low) / (kSteps<T> - 1.0))) {
    const float low = range.high == range.low ? range.low : std::round(range.low / scale_) * scale_;
    offset_ = low - static_cast<float>(kLowest<T>) * scale_;
  }
  float operator()(T value) const { return static_cast<float>(value) * scale_ + offset_; }

 private:
  float scale_, offset_;
};
template <class T>
class TensorQuantizer {
 public:
  explicit TensorQuantizer(QuantizedRange range)
      : scale_(range.high == range.low
                   ? 0.0f
                   : static_cast<float>((kSteps<T> - 1.0) / (range.high - range.low))),
        low_(std::round(range.low * scale_) - static_cast<float>(kLowest<T>)) {}
  T operator()(float value) const {
    // The largest float below 2^31, for int32.
    constexpr float kLeast = static_cast<float>(kLowest<T>),
                    kMost = sizeof(T) == 4 ? 0x1.fffffep30f : static_cast<float>(kHighest<T>);
    const float place = std::round(value * scale_) - low_;
    return static_cast<T>(place > kLeast ? std::min(place, kMost) : kLeast);
  }

 private:
  float scale_, low_;
};

// The range of products, when 32 bits hold the sum of them.
template <class A, class B>
QuantizedRange ProductRange(QuantizedRange a, QuantizedRange b) {
  const auto step_a = static_cast<float>((a.high - a.low) / static_cast<float>(kSteps<A> - 1.0)),
             step_b = static_cast<float>((b.high - b.low) / static_cast<float>(kSteps<B> - 1.0));
  const float step = step_a * step_b;
  return {step * static_cast<float>(kLowest<int32_t>),
          step * static_cast<float>(kHighest<int32_t>)};
}

// What zero is, to be subtracted before numbers are multiplied.
template <class T>
uint32_t ZeroOf(QuantizedRange range) {
  return static_cast<uint32_t>(GridPlace<T>(0.0f, range));
}

// Calls f with a value of the type behind a quantised dtype; UNIMPLEMENTED when it is not in the
// list.
template <class List, class F>
absl::Status ForQuantized(DType dtype, List list, F&& f) {
  if (IsQuantized(dtype) && ForDType(PlainDType(dtype), list, f)) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat("values of ", DTypeName(dtype)));
}

}  // namespace floe::kernels
