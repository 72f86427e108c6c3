// Bilinear resizing of quantised images, in fixed point.
#include <cmath>
#include <type_traits>

#include "base/budget.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/image/resize.h"
#include "kernels/cpu/quantized/quantized.h"

namespace floe::kernels {
namespace {

struct Neighbours {
  int64_t low = 0, high = 0;
  float part = 0;  // of the way from low to high
};
using Axis = BudgetVector<Neighbours>;

struct QuantizedResizeOptions {
  bool align_corners, half_pixel;
};

Axis NeighboursOf(int64_t in, int64_t out, const QuantizedResizeOptions& options) {
  const float scale = ScaleOf(in, out, options.align_corners);
  Axis axis(out);
  for (int64_t o = 0; o < out; ++o) {
    const float source = SourceOf(o, scale, options.half_pixel), floor = std::floor(source);
    axis[o].high = std::min(static_cast<int64_t>(std::ceil(source)), in - 1);
    axis[o].low = std::min(std::max(static_cast<int64_t>(floor), int64_t{0}), axis[o].high);
    axis[o].part = source - floor;
  }
  return axis;
}

// Between two values: with 7 bits past the point for quint8, 30 for qint32, which TensorFlow takes
// as float32 first.
template <class T>
struct Mixer {
  static constexpr int64_t kOne = int64_t{1} << (sizeof(T) == 1 ? 7 : 30);
  static int64_t Part(float part) { return static_cast<int64_t>(part * static_cast<float>(kOne)); }
  static int64_t Along(T first, T second, int64_t part) {
    const auto a = static_cast<int64_t>(static_cast<float>(first)),
               b = static_cast<int64_t>(static_cast<float>(second));
    return a * kOne + (b - a) * part;
  }
  static T Mix(T a, T b, T c, T d, float x, float y) {
    const int64_t top = Along(a, b, Part(x)), bottom = Along(c, d, Part(x));
    return static_cast<T>((top + (bottom - top) / kOne * Part(y) + kOne / 2) / kOne);
  }
};
template <>
struct Mixer<float> {
  static float Mix(float a, float b, float c, float d, float x, float y) {
    const float top = a + (b - a) * x, bottom = c + (d - c) * x;
    return top + (bottom - top) * y;
  }
};

template <class T>
absl::Status Resize(const KernelContext& ctx, const QuantizedResizeOptions& options) {
  FLOE_ASSIGN_OR_RETURN(const QuantizedRange range, RangeOf(ctx, 2));
  GiveRange(ctx, 1, range);
  const TensorView &in = ctx.in(0), &out = ctx.out(0);
  if (out.data == nullptr || out.elements() == 0) return absl::OkStatus();
  const int64_t in_h = in.shape.dim(1), in_w = in.shape.dim(2), channels = in.shape.dim(3),
                out_h = out.shape.dim(1), out_w = out.shape.dim(2);
  if (in_h == 0 || in_w == 0) return absl::InvalidArgumentError("the images are empty");
  const Axis rows = NeighboursOf(in_h, out_h, options),
             columns = NeighboursOf(in_w, out_w, options);
  T* to = out.as<T>();
  for (int64_t line = 0; line < out.shape.dim(0) * out_h; ++line) {
    const Neighbours& y = rows[line % out_h];
    const T* image = in.as<T>() + line / out_h * in_h * in_w * channels;
    for (const Neighbours& x : columns) {
      const auto at = [&](int64_t row, int64_t column) {
        return image + (row * in_w + column) * channels;
      };
      const T *a = at(y.low, x.low), *b = at(y.low, x.high), *c = at(y.high, x.low),
              *d = at(y.high, x.high);
      for (int64_t k = 0; k < channels; ++k)
        *to++ = Mixer<T>::Mix(a[k], b[k], c[k], d[k], x.part, y.part);
    }
  }
  return absl::OkStatus();
}

template <class T>
absl::StatusOr<std::unique_ptr<Kernel>> MakeQuantizedResize(const KernelArgs& args) {
  const QuantizedResizeOptions options{args.node.attrs.Bool("align_corners"),
                                       args.node.attrs.Bool("half_pixel_centers")};
  return FromFunction([options](const KernelContext& ctx) { return Resize<T>(ctx, options); });
}
FLOE_REGISTER_KERNEL(QuantizedResizeBilinear, kCpu, MakeQuantizedResize<uint8_t>, DType::kQUInt8);
FLOE_REGISTER_KERNEL(QuantizedResizeBilinear, kCpu, MakeQuantizedResize<int32_t>, DType::kQInt32);
FLOE_REGISTER_KERNEL(QuantizedResizeBilinear, kCpu, MakeQuantizedResize<float>, DType::kFloat32);

}  // namespace
}  // namespace floe::kernels
