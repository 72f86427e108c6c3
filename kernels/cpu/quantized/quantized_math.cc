// Arithmetic of quantised values and what rearranges them: sums, products, joining, reshaping,
// resizing, batch normalisation.
#include <cmath>
#include <type_traits>
#include <vector>

#include "kernels/cpu/elementwise/broadcast.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/move/grid_copy.h"
#include "kernels/cpu/quantized/quantized.h"

namespace floe::kernels {
namespace {

// Even around zero, and so wide that many values of either range can be added: 2^bits times as
// wide.
QuantizedRange SumRange(QuantizedRange a, QuantizedRange b, int bits) {
  const float most =
      std::max(a.high, std::max(-a.low, std::max(b.high, -b.low))) * static_cast<float>(1 << bits);
  return {-most, most};
}

// out = f(a, b) with broadcasting, the first inputs being of type T.
template <class T, class F>
void Combine(const KernelContext& ctx, const F& f) {
  const TensorView &a = ctx.in(0), &b = ctx.in(1), &out = ctx.out(0);
  if (out.data == nullptr) return;
  const Broadcast<2> steps = MakeBroadcast<2>(out.shape, {&a.shape, &b.shape});
  const int64_t step_a = steps.strides[0].back(), step_b = steps.strides[1].back();
  ForEachRun(steps, ctx.pool, [&](int64_t to, const std::array<int64_t, 2>& from, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      out.as<int32_t>()[to + i] =
          f(a.as<T>()[from[0] + i * step_a], b.as<T>()[from[1] + i * step_b]);
  });
}

// A value on the grid of a sum: exactly, or by the place of 0 and the step from there to that of 1.
template <class T>
class Term {
 public:
  Term(QuantizedRange from, QuantizedRange to, bool exact)
      : from_(from),
        to_(to),
        exact_(exact),
        zero_(Exact(0)),
        step_(
            static_cast<int32_t>(static_cast<uint32_t>(Exact(1)) - static_cast<uint32_t>(zero_))) {}
  int32_t operator()(T value) const {
    return exact_ ? Exact(value) : WrapAdd(zero_, WrapMul(static_cast<int32_t>(value), step_));
  }

 private:
  int32_t Exact(T value) const { return Quantized<int32_t>(Dequantized(value, from_), to_); }

  QuantizedRange from_, to_;
  bool exact_;
  int32_t zero_, step_;
};

template <class T>
absl::Status AddAs(const KernelContext& ctx, int bits, bool exact_a, bool exact_b) {
  FLOE_ASSIGN_OR_RETURN(const QuantizedRange of_a, RangeOf(ctx, 2));
  FLOE_ASSIGN_OR_RETURN(const QuantizedRange of_b, RangeOf(ctx, 4));
  const QuantizedRange to = SumRange(of_a, of_b, bits);
  GiveRange(ctx, 1, to);
  const Term<T> term_a(of_a, to, exact_a), term_b(of_b, to, exact_b);
  Combine<T>(ctx, [&](T a, T b) { return WrapAdd(term_a(a), term_b(b)); });
  return absl::OkStatus();
}
template <class T>
absl::Status BiasAdd(const KernelContext& ctx) {
  return AddAs<T>(ctx, 17, true, true);
}
template <class T>
absl::Status Add(const KernelContext& ctx) {
  const bool scalar_a = ctx.in(0).elements() == 1,
             scalar_b = !scalar_a && ctx.in(1).elements() == 1;
  return AddAs<T>(ctx, 14, scalar_a, scalar_b);
}

template <class T>
absl::Status Mul(const KernelContext& ctx) {
  FLOE_ASSIGN_OR_RETURN(const QuantizedRange of_a, RangeOf(ctx, 2));
  FLOE_ASSIGN_OR_RETURN(const QuantizedRange of_b, RangeOf(ctx, 4));
  GiveRange(ctx, 1, ProductRange<T, T>(of_a, of_b));
  const uint32_t zero_a = ZeroOf<T>(of_a), zero_b = ZeroOf<T>(of_b);
  Combine<T>(ctx, [&](T a, T b) {
    return static_cast<int32_t>((static_cast<uint32_t>(static_cast<int32_t>(a)) - zero_a) *
                                (static_cast<uint32_t>(static_cast<int32_t>(b)) - zero_b));
  });
  return absl::OkStatus();
}

FLOE_REGISTER_KERNEL(QuantizedBiasAdd, kCpu, MakeFunction<BiasAdd<int8_t>>, DType::kQInt8);
FLOE_REGISTER_KERNEL(QuantizedBiasAdd, kCpu, MakeFunction<BiasAdd<uint8_t>>, DType::kQUInt8);
FLOE_REGISTER_KERNEL(QuantizedAdd, kCpu, MakeFunction<Add<uint8_t>>, DType::kQUInt8);
FLOE_REGISTER_KERNEL(QuantizedMul, kCpu, MakeFunction<Mul<uint8_t>>, DType::kQUInt8);

// Every part in the range that holds them all.
template <class T>
absl::Status ConcatParts(const KernelContext& ctx) {
  const int parts = static_cast<int>(ctx.inputs.size()) / 3;
  std::vector<QuantizedRange> ranges;
  QuantizedRange to;
  for (int i = 0; i < parts; ++i) {
    const TensorView &low = ctx.in(1 + parts + i), &high = ctx.in(1 + 2 * parts + i);
    if (low.elements() != 1 || high.elements() != 1)
      return absl::InvalidArgumentError(
          absl::StrCat("bounds of shapes ", low.shape.ToString(), " and ", high.shape.ToString()));
    ranges.push_back({*low.as<float>(), *high.as<float>()});
    to.low = std::min(to.low, ranges[i].low);
    to.high = i == 0 ? ranges[i].high : std::max(to.high, ranges[i].high);
  }
  if (std::is_signed_v<T>) {
    const float most = std::max(std::abs(to.low), std::abs(to.high));
    to = {-most, most};
  }
  GiveRange(ctx, 1, to);
  FLOE_ASSIGN_OR_RETURN(const int64_t axis, ReadInt(ctx.in(0)));
  const Shape& shape = ctx.out(0).shape;
  FLOE_ASSIGN_OR_RETURN(const int along, NormalizeAxis(axis, shape.rank()));
  if (ctx.out(0).data == nullptr || shape.elements() == 0) return absl::OkStatus();
  int64_t outer = 1;
  for (int i = 0; i < along; ++i) outer *= shape.dim(i);
  const int64_t width = shape.elements() / outer;
  int64_t at = 0;
  for (int k = 0; k < parts; ++k) {
    const TensorView& part = ctx.in(1 + k);
    const int64_t own = part.elements() / outer;
    if (at + own > width) return absl::InvalidArgumentError("the parts exceed the whole");
    const bool same = ranges[k].low == to.low && ranges[k].high == to.high;
    const TensorDequantizer<T> number(ranges[k]);
    const TensorQuantizer<T> place(to);
    for (int64_t i = 0; i < part.elements(); ++i) {
      const T value = part.as<T>()[i];
      ctx.out(0).as<T>()[i / own * width + at + i % own] = same ? value : place(number(value));
    }
    at += own;
  }
  return at == width ? absl::OkStatus() : absl::InvalidArgumentError("the parts are too short");
}
absl::Status Concat(const KernelContext& ctx) {
  absl::Status status;
  const absl::Status known = ForQuantized(ctx.in(1).dtype, TypeList<uint8_t, int32_t>{},
                                          [&](auto t) { status = ConcatParts<decltype(t)>(ctx); });
  return known.ok() ? status : known;
}
FLOE_REGISTER_KERNEL(QuantizedConcat, kCpu, MakeFunction<Concat>);

absl::Status Reshape(const KernelContext& ctx) {
  FLOE_ASSIGN_OR_RETURN(const QuantizedRange range, RangeOf(ctx, 2));
  GiveRange(ctx, 1, range);
  if (ctx.out(0).data != nullptr)
    CopyElements(ctx.in(0).dtype, ctx.in(0).data, ctx.out(0).data, ctx.in(0).elements());
  return absl::OkStatus();
}
FLOE_REGISTER_KERNEL(QuantizedReshape, kCpu, MakeFunction<Reshape>, DType::kQUInt8, DType::kQInt32);

struct BatchNormOptions {
  float epsilon;
  bool scales;
};

// In fixed point over a range of +-2^20, ten bits of which are past the point.
absl::Status BatchNorm(const KernelContext& ctx, const BatchNormOptions& options) {
  const Shape& shape = ctx.in(0).shape;
  const int64_t depth = shape.dim(3);
  QuantizedRange ranges[5];
  for (int i = 0; i < 5; ++i) {
    FLOE_ASSIGN_OR_RETURN(ranges[i], RangeOf(ctx, 3 * i + 1));
    if (i > 0 && ctx.in(3 * i).shape != Shape({depth}))
      return absl::InvalidArgumentError(absl::StrCat("input ", 3 * i, " has shape ",
                                                     ctx.in(3 * i).shape.ToString(), ", expected [",
                                                     depth, "]"));
  }
  const QuantizedRange to{-(1 << 20), 1 << 20};
  GiveRange(ctx, 1, to);
  if (ctx.out(0).data == nullptr) return absl::OkStatus();
  std::vector<int32_t> scale(depth), offset(depth);
  for (int64_t c = 0; c < depth; ++c) {
    const auto number = [&](int i) {
      return Dequantized(ctx.in(3 * i).as<uint8_t>()[c], ranges[i]);
    };
    float factor = 1.0f / std::sqrt(number(2) + options.epsilon);
    if (options.scales) factor *= number(4);
    scale[c] = Quantized<int32_t>(factor, to);
    offset[c] = Quantized<int32_t>(-number(1) * factor + number(3), to);
  }
  const auto one = Quantized<int32_t>(1.0f, to);
  for (int64_t i = 0; i < shape.elements(); ++i) {
    const auto value = Quantized<int32_t>(Dequantized(ctx.in(0).as<uint8_t>()[i], ranges[0]), to);
    ctx.out(0).as<int32_t>()[i] =
        WrapAdd(WrapMul(value, scale[i % depth]) / one, offset[i % depth]);
  }
  return absl::OkStatus();
}
absl::StatusOr<std::unique_ptr<Kernel>> MakeBatchNorm(const KernelArgs& args) {
  const BatchNormOptions options{args.node.attrs.Float("variance_epsilon"),
                                 args.node.attrs.Bool("scale_after_normalization")};
  return FromFunction([options](const KernelContext& ctx) { return BatchNorm(ctx, options); });
}
FLOE_REGISTER_KERNEL(QuantizedBatchNormWithGlobalNormalization, kCpu, MakeBatchNorm,
                     DType::kQUInt8);

}  // namespace
}  // namespace floe::kernels
