// Simulated quantisation: values rounded to the grid that a given number of bits has in a range.
#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/elementwise/binary_f32.h"
#include "kernels/cpu/elementwise/unary_f32.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/move/grid_copy.h"
#include "kernels/cpu/parallel.h"

namespace floe::kernels {
namespace {

struct FakeQuant {
  float low = -6, high = 6;
  float first = 0, last = 255;  // the grid's steps
};

// The range moved so that zero falls on the grid.
void Nudge(const FakeQuant& q, float* low, float* high, float* step) {
  *step = (q.high - q.low) / (q.last - q.first);
  const float zero = q.first - q.low / *step;
  const float nudged = zero < q.first ? q.first : zero > q.last ? q.last : std::round(zero);
  *low = (q.first - nudged) * *step;
  *high = (q.last - nudged) * *step;
}

// One range's grid. TensorFlow multiplies by the inverse, which decides what lies half way between
// two steps.
struct QuantSteps {
  float low, high, step, inverse, zero;
  explicit QuantSteps(const FakeQuant& q) {
    Nudge(q, &low, &high, &step);
    inverse = (q.last - q.first) / (q.high - q.low);
    zero = std::floor(-low * inverse + 0.5f);
  }
};

void QuantizeLine(const FakeQuant& q, const float* x, float* y, int64_t n, int64_t stride) {
  if (q.low == 0 && q.high == 0) {
    for (int64_t i = 0; i < n; ++i) y[i * stride] = 0;
    return;
  }
  const QuantSteps g(q);
  for (int64_t i = 0; i < n; ++i) {
    const float shifted = std::max(std::min(x[i * stride], g.high), g.low) - g.low;
    y[i * stride] = std::floor(shifted * g.inverse - g.zero + 0.5f) * g.step;
  }
}

// The same for elements side by side, by vectors, piece by piece in the cache.
class VectorQuantizer {
 public:
  void Run(const FakeQuant& q, const KernelContext& ctx) const {
    const float* x = ctx.in(0).as<float>();
    float* y = ctx.out(0).as<float>();
    if (q.low == 0 && q.high == 0) {
      std::fill_n(y, ctx.out(0).elements(), 0.0f);
      return;
    }
    const QuantSteps g(q);
    ParallelRange(ctx.pool, ctx.out(0).elements(), kElementGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i += kPiece)
        Quantize(g, x + i, y + i, static_cast<size_t>(std::min(kPiece, end - i)));
    });
  }

 private:
  static constexpr int64_t kPiece = 1024;

  void Quantize(const QuantSteps& g, const float* x, float* y, size_t n) const {
    const float half = 0.5f;
    minimum_(x, &g.high, y, n);
    maximum_(y, &g.low, y, n);
    sub_(y, &g.low, y, n);
    mul_(y, &g.inverse, y, n);
    sub_(y, &g.zero, y, n);
    add_(y, &half, y, n);
    floor_(y, y, n, 0);
    mul_(y, &g.step, y, n);
  }

  BinaryF32 minimum_ = FindBinaryF32("Minimum").scalar_b,
            maximum_ = FindBinaryF32("Maximum").scalar_b, sub_ = FindBinaryF32("Sub").scalar_b,
            mul_ = FindBinaryF32("Mul").scalar_b, add_ = FindBinaryF32("Add").scalar_b;
  UnaryF32 floor_ = FindUnaryF32("Floor");
};

FakeQuant QuantOf(const Attrs& attrs) {
  FakeQuant q;
  q.low = attrs.Float("min", -6);
  q.high = attrs.Float("max", 6);
  q.first = attrs.Bool("narrow_range") ? 1 : 0;
  q.last = static_cast<float>((int64_t{1} << attrs.Int("num_bits", 8)) - 1);
  return q;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeArgs(const KernelArgs& args) {
  const FakeQuant q = QuantOf(args.node.attrs);
  return FromFunction([q, vectors = VectorQuantizer()](const KernelContext& ctx) {
    vectors.Run(q, ctx);
    return absl::OkStatus();
  });
}
FLOE_REGISTER_KERNEL(FakeQuantWithMinMaxArgs, kCpu, MakeArgs, DType::kFloat32);

// One range for all, or one for each channel (the last dim).
absl::StatusOr<std::unique_ptr<Kernel>> MakeVars(const KernelArgs& args) {
  const FakeQuant base = QuantOf(args.node.attrs);
  return FromFunction([base, vectors = VectorQuantizer()](const KernelContext& ctx) {
    const int64_t ranges = ctx.in(1).elements();
    if (ranges == 0 || ctx.in(2).elements() != ranges || ctx.out(0).elements() % ranges != 0) {
      return absl::InvalidArgumentError("min and max do not fit the channels");
    }
    for (int64_t c = 0; c < ranges; ++c) {
      FakeQuant q = base;
      q.low = ctx.in(1).as<float>()[c];
      q.high = ctx.in(2).as<float>()[c];
      if (ranges == 1) {
        vectors.Run(q, ctx);
        break;
      }
      QuantizeLine(q, ctx.in(0).as<float>() + c, ctx.out(0).as<float>() + c,
                   ctx.out(0).elements() / ranges, ranges);
    }
    return absl::OkStatus();
  });
}
FLOE_REGISTER_KERNEL(FakeQuantWithMinMaxVars, kCpu, MakeVars, DType::kFloat32);
FLOE_REGISTER_KERNEL(FakeQuantWithMinMaxVarsPerChannel, kCpu, MakeVars, DType::kFloat32);

struct Dequant {
  bool is_signed, range_given, narrow, half_up;
  int bits, axis;
};

// The scale is the power-free one that fits the larger side of the range.
template <class T>
void DequantizeLine(const Dequant& d, int bits, T low, T high, const T* x, T* y, int64_t outer,
                    int64_t inner, int64_t step) {
  const T least = d.is_signed ? -std::ldexp(T(1), bits - 1) + (d.narrow ? 1 : 0) : 0;
  const T most = d.is_signed ? std::ldexp(T(1), bits - 1) - 1 : std::ldexp(T(1), bits) - 1;
  const T by_low = least * low > 0 ? least / low : std::numeric_limits<T>::max();
  const T by_high = most * high > 0 ? most / high : std::numeric_limits<T>::max();
  T scale, inverse;
  if (by_low < by_high) {
    scale = by_low;
    inverse = low / least;
    high = most * inverse;
  } else {
    scale = by_high;
    inverse = high / most;
    low = least * inverse;
  }
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      const T value =
          d.range_given ? std::min(std::max(x[o * step + i], low), high) : x[o * step + i];
      const T grid = value * scale;
      y[o * step + i] = (d.half_up ? std::floor(grid + T(0.5)) : std::nearbyint(grid)) * inverse;
    }
  }
}

template <class T>
absl::StatusOr<std::unique_ptr<Kernel>> MakeDequant(const KernelArgs& args) {
  const auto& a = args.node.attrs;
  const Dequant d{a.Bool("signed_input", true),
                  a.Bool("range_given", args.node.op->name == "QuantizeAndDequantizeV3"),
                  a.Bool("narrow_range"),
                  a.String("round_mode", "HALF_TO_EVEN") == "HALF_UP",
                  static_cast<int>(a.Int("num_bits", 8)),
                  static_cast<int>(a.Int("axis", -1))};
  return FromFunction([d](const KernelContext& ctx) -> absl::Status {
    const Shape& shape = ctx.in(0).shape;
    int bits = d.bits;
    if (ctx.inputs.size() > 3) {
      FLOE_ASSIGN_OR_RETURN(const int64_t given, ReadInt(ctx.in(3)));
      bits = static_cast<int>(given);
    }
    if (bits < 1 || bits > 62)
      return absl::InvalidArgumentError(absl::StrCat("num_bits is ", bits));
    int64_t channels = 1, inner = shape.elements();
    if (d.axis >= 0 && d.axis < shape.rank()) {
      channels = shape.dim(d.axis);
      inner = 1;
      for (int i = d.axis + 1; i < shape.rank(); ++i) inner *= shape.dim(i);
    }
    if (shape.elements() == 0) return absl::OkStatus();
    const int64_t step = channels * inner, outer = shape.elements() / step;
    for (int64_t c = 0; c < channels; ++c) {
      const T* x = ctx.in(0).as<T>() + c * inner;
      T low = 0, high = 0;
      if (d.range_given) {
        low = ctx.in(1).as<T>()[ctx.in(1).elements() == channels ? c : 0];
        high = ctx.in(2).as<T>()[ctx.in(2).elements() == channels ? c : 0];
        if (low > high)
          return absl::InvalidArgumentError(
              absl::StrCat("input_min ", low, " is above input_max ", high));
      } else {
        low = high = x[0];
        for (int64_t o = 0; o < outer; ++o) {
          for (int64_t i = 0; i < inner; ++i) {
            low = std::min(low, x[o * step + i]);
            high = std::max(high, x[o * step + i]);
          }
        }
      }
      DequantizeLine<T>(d, bits, low, high, x, ctx.out(0).as<T>() + c * inner, outer, inner, step);
    }
    return absl::OkStatus();
  });
}

FLOE_REGISTER_KERNELS(QuantizeAndDequantizeV2, kCpu, MakeDequant<T>, TypeList<float, double>);
FLOE_REGISTER_KERNELS(QuantizeAndDequantizeV3, kCpu, MakeDequant<T>, TypeList<float, double>);

}  // namespace
}  // namespace floe::kernels
