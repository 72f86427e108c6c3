// Between floats and quantised values, and from one range to another.
#include <limits>
#include <string>

#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/move/grid_copy.h"
#include "kernels/cpu/quantized/quantized.h"

namespace floe::kernels {
namespace {

enum class Mode : uint8_t { kMinCombined, kMinFirst, kScaled };

struct QuantizedOptions {
  Mode mode;
  int axis;
  bool narrow, half_to_even;
  float least_width;  // of a range, as a part of its larger bound
};

QuantizedOptions QuantizedOptionsOf(const Attrs& attrs) {
  const std::string mode = attrs.String("mode", "MIN_COMBINED");
  return {mode == "SCALED"      ? Mode::kScaled
          : mode == "MIN_FIRST" ? Mode::kMinFirst
                                : Mode::kMinCombined,
          static_cast<int>(attrs.Int("axis", -1)), attrs.Bool("narrow_range"),
          attrs.String("round_mode", "HALF_AWAY_FROM_ZERO") == "HALF_TO_EVEN",
          attrs.Float("ensure_minimum_range", 0.01f)};
}

// The tensor as [outer, slices, inner], a range for each slice.
struct Slices {
  int64_t outer = 1, count = 1, inner = 1;
};
absl::StatusOr<Slices> SlicesOf(const KernelContext& ctx, int axis) {
  const Shape& shape = ctx.in(0).shape;
  Slices s;
  if (axis < 0) {
    s.inner = shape.elements();
  } else {
    for (int i = 0; i < axis; ++i) s.outer *= shape.dim(i);
    s.count = shape.dim(axis);
    for (int i = axis + 1; i < shape.rank(); ++i) s.inner *= shape.dim(i);
  }
  for (int i = 1; i < 3; ++i) {
    if (ctx.in(i).elements() != s.count || (axis >= 0 && ctx.in(i).shape.rank() != 1))
      return absl::InvalidArgumentError(
          absl::StrCat("input ", i, ", the bounds of ranges, has shape ",
                       ctx.in(i).shape.ToString(), ", expected ", s.count, " elements"));
  }
  return s;
}

// The grid that MIN_COMBINED of a signed type has is moved by half of it.
template <class T>
constexpr float kHalfRange = std::is_signed_v<T> ? static_cast<float>(kSteps<T> / 2) : 0.0f;

template <class T, class To>
void DequantizeSlice(const QuantizedOptions& options, QuantizedRange range, const Slices& s,
                     const T* x, To* y) {
  const auto each = [&](const auto& number) {
    for (int64_t o = 0; o < s.outer; ++o) {
      const int64_t at = o * s.count * s.inner;
      for (int64_t i = 0; i < s.inner; ++i) y[at + i] = static_cast<To>(number(x[at + i]));
    }
  };
  if (options.mode == Mode::kMinFirst) return each(TensorDequantizer<T>(range));
  if (options.mode == Mode::kMinCombined) {
    const float scale = (range.high - range.low) /
                        (static_cast<float>(kHighest<T>) - static_cast<float>(kLowest<T>));
    return each(
        [&](T value) { return (static_cast<float>(value) + kHalfRange<T>)*scale + range.low; });
  }
  const float by_high = range.high / static_cast<float>(kHighest<T>);
  const auto least = static_cast<float>(kLowest<T> + (options.narrow ? 1 : 0));
  const float scale = std::is_signed_v<T> ? std::max(range.low / least, by_high) : by_high;
  each([&](T value) { return static_cast<float>(value) * scale; });
}

template <class T, class To>
absl::Status DequantizeTo(const KernelContext& ctx, const QuantizedOptions& options) {
  FLOE_ASSIGN_OR_RETURN(const Slices s, SlicesOf(ctx, options.axis));
  for (int64_t k = 0; k < s.count && s.outer * s.inner > 0; ++k) {
    const QuantizedRange range{ctx.in(1).as<float>()[k], ctx.in(2).as<float>()[k]};
    DequantizeSlice(options, range, s, ctx.in(0).as<T>() + k * s.inner,
                    ctx.out(0).as<To>() + k * s.inner);
  }
  return absl::OkStatus();
}

template <class T>
absl::StatusOr<std::unique_ptr<Kernel>> MakeDequantize(const KernelArgs& args) {
  const QuantizedOptions options = QuantizedOptionsOf(args.node.attrs);
  if (options.axis >= 0 && options.mode == Mode::kMinFirst)
    return absl::UnimplementedError("MIN_FIRST with an axis");
  const bool half = args.node.attrs.Type("dtype", DType::kFloat32) == DType::kBFloat16;
  return FromFunction([options, half](const KernelContext& ctx) {
    return half ? DequantizeTo<T, BFloat16>(ctx, options) : DequantizeTo<T, float>(ctx, options);
  });
}
FLOE_REGISTER_KERNEL(Dequantize, kCpu, MakeDequantize<int8_t>, DType::kQInt8);
FLOE_REGISTER_KERNEL(Dequantize, kCpu, MakeDequantize<uint8_t>, DType::kQUInt8);
FLOE_REGISTER_KERNEL(Dequantize, kCpu, MakeDequantize<int16_t>, DType::kQInt16);
FLOE_REGISTER_KERNEL(Dequantize, kCpu, MakeDequantize<uint16_t>, DType::kQUInt16);
FLOE_REGISTER_KERNEL(Dequantize, kCpu, MakeDequantize<int32_t>, DType::kQInt32);

// Of a float that is in T's range but for what rounding adds.
template <class T>
T Clamped(float value) {
  if (!(value > static_cast<float>(kLowest<T>))) return std::numeric_limits<T>::lowest();
  return value < static_cast<float>(kHighest<T>) ? static_cast<T>(value)
                                                 : std::numeric_limits<T>::max();
}

// Includes zero, and is wide enough that its steps differ.
absl::StatusOr<QuantizedRange> Widened(const QuantizedOptions& options, QuantizedRange range) {
  if (!(range.low <= range.high))
    return absl::InvalidArgumentError(absl::StrCat("a range from ", range.low, " to ", range.high));
  const float least =
      std::max(1.0f, std::max(std::abs(range.low), std::abs(range.high))) * options.least_width;
  const float low = std::min(0.0f, range.low);
  return QuantizedRange{low, std::max(0.0f, std::max(range.high, low + least))};
}

// Changes the range to the one that SCALED uses of it.
template <class T>
void QuantizeSlice(const QuantizedOptions& options, QuantizedRange* range, const Slices& s,
                   const float* x, T* y) {
  const auto each = [&](const auto& place) {
    for (int64_t o = 0; y != nullptr && o < s.outer; ++o) {
      const int64_t at = o * s.count * s.inner;
      for (int64_t i = 0; i < s.inner; ++i) y[at + i] = place(x[at + i]);
    }
  };
  if (options.mode == Mode::kMinFirst) return each(TensorQuantizer<T>(*range));
  if (options.mode == Mode::kMinCombined) {
    const auto scale = static_cast<float>((kSteps<T> - 1.0) / (range->high - range->low));
    return each([&](float value) {
      const float inside = std::max(std::min(value, range->high), range->low);
      return Clamped<T>(std::round((inside - range->low) * scale - kHalfRange<T>));
    });
  }
  const auto least = static_cast<float>(kLowest<T> + (options.narrow ? 1 : 0)),
             most = static_cast<float>(kHighest<T>);
  constexpr float kNone = std::numeric_limits<float>::max();
  const float scale = std::min(least * range->low > 0 ? least / range->low : kNone,
                               most * range->high > 0 ? most / range->high : kNone);
  *range = {least / scale, most / scale};
  each([&](float value) {
    const float grid = std::max(std::min(value, range->high), range->low) * scale;
    return Clamped<T>(options.half_to_even ? std::nearbyint(grid) : std::round(grid));
  });
}

template <class T>
absl::Status QuantizeTo(const KernelContext& ctx, const QuantizedOptions& options) {
  FLOE_ASSIGN_OR_RETURN(const Slices s, SlicesOf(ctx, options.axis));
  T* const out = ctx.out(0).as<T>();
  for (int64_t k = 0; k < s.count; ++k) {
    FLOE_ASSIGN_OR_RETURN(QuantizedRange range,
                          Widened(options, {ctx.in(1).as<float>()[k], ctx.in(2).as<float>()[k]}));
    QuantizeSlice(options, &range, s, ctx.in(0).as<float>() + k * s.inner,
                  out == nullptr ? out : out + k * s.inner);
    for (int i = 1; i < 3; ++i) {
      if (ctx.out(i).data != nullptr) ctx.out(i).as<float>()[k] = i == 1 ? range.low : range.high;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeQuantize(const KernelArgs& args) {
  const QuantizedOptions options = QuantizedOptionsOf(args.node.attrs);
  const DType dtype = args.node.attrs.Type("T", DType::kQUInt8);
  if (options.half_to_even && options.mode != Mode::kScaled)
    return absl::InvalidArgumentError("round_mode HALF_TO_EVEN needs mode SCALED");
  return FromFunction([options, dtype](const KernelContext& ctx) {
    absl::Status status;
    const absl::Status known = ForQuantized(
        dtype, QuantizedInts{}, [&](auto t) { status = QuantizeTo<decltype(t)>(ctx, options); });
    return known.ok() ? status : known;
  });
}
FLOE_REGISTER_KERNEL(QuantizeV2, kCpu, MakeQuantize, DType::kFloat32);

// ---- from qint32 to quint8 ----

// In fixed point with 16 bits past the point.
void RequantizeTo(const KernelContext& ctx, QuantizedRange from, QuantizedRange to) {
  GiveRange(ctx, 1, to);
  if (ctx.out(0).data == nullptr) return;
  constexpr double kOne = 1 << 16;
  const float width = to.high - to.low, middle = (from.low + from.high) / 2,
              inverse = width == 0 ? 0.0f : static_cast<float>(255.0 / width);
  const auto fixed = [&](double number) { return width == 0 ? 0 : WholeNumber(number); };
  const int64_t scale = fixed(255.0 * kOne * (from.high - from.low) / width),
                offset = fixed(middle * inverse * static_cast<float>(kOne)),
                first = fixed(kOne * (to.low * 255.0) / width);
  for (int64_t i = 0; i < ctx.in(0).elements(); ++i) {
    const int64_t product = WrapMul<int64_t>(ctx.in(0).as<int32_t>()[i], scale) >> 32;
    const int64_t place = (product + offset - first + (1 << 15)) >> 16;
    ctx.out(0).as<uint8_t>()[i] = static_cast<uint8_t>(std::clamp<int64_t>(place, 0, 255));
  }
}

absl::Status Requantize(const KernelContext& ctx) {
  FLOE_ASSIGN_OR_RETURN(const QuantizedRange from, RangeOf(ctx, 1));
  FLOE_ASSIGN_OR_RETURN(const QuantizedRange to, RangeOf(ctx, 3));
  if (to.low > 0 || to.high < to.low)
    return absl::InvalidArgumentError(absl::StrCat("requested range from ", to.low, " to ", to.high,
                                                   ", expected one that begins at 0 or below"));
  RequantizeTo(ctx, from, to);
  return absl::OkStatus();
}
FLOE_REGISTER_KERNEL(Requantize, kCpu, MakeFunction<Requantize>, DType::kQInt32);

// The part of the range that the values take, and zero.
absl::StatusOr<QuantizedRange> UsedRange(const KernelContext& ctx) {
  FLOE_ASSIGN_OR_RETURN(const QuantizedRange range, RangeOf(ctx, 1));
  int32_t low = INT32_MAX, high = INT32_MIN;
  for (int64_t i = 0; i < ctx.in(0).elements(); ++i) {
    low = std::min(low, ctx.in(0).as<int32_t>()[i]);
    high = std::max(high, ctx.in(0).as<int32_t>()[i]);
  }
  return QuantizedRange{std::min(0.0f, Dequantized(low, range)), Dequantized(high, range)};
}

absl::Status RequantizationRange(const KernelContext& ctx) {
  FLOE_ASSIGN_OR_RETURN(const QuantizedRange used, UsedRange(ctx));
  GiveRange(ctx, 0, used);
  return absl::OkStatus();
}
FLOE_REGISTER_KERNEL(RequantizationRange, kCpu, MakeFunction<RequantizationRange>, DType::kQInt32);

absl::Status ShrinkRange(const KernelContext& ctx) {
  FLOE_ASSIGN_OR_RETURN(const QuantizedRange from, RangeOf(ctx, 1));
  FLOE_ASSIGN_OR_RETURN(const QuantizedRange used, UsedRange(ctx));
  RequantizeTo(ctx, from, used);
  return absl::OkStatus();
}
FLOE_REGISTER_KERNEL(QuantizeDownAndShrinkRange, kCpu, MakeFunction<ShrinkRange>, DType::kQInt32);

}  // namespace
}  // namespace floe::kernels
