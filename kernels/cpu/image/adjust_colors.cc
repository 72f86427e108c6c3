// Colours of images.
#include <algorithm>
#include <cmath>

#include "base/status.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/move/grid_copy.h"
#include "model/half.h"

namespace floe::kernels {
namespace {

// (x - mean) * factor + mean, the mean of each channel of each image.
absl::Status AdjustContrast(const KernelContext& ctx) {
  const Shape& shape = ctx.in(0).shape;
  const int64_t channels = shape.dim(shape.rank() - 1),
                area = shape.dim(shape.rank() - 2) * shape.dim(shape.rank() - 3);
  if (shape.elements() == 0) return absl::OkStatus();
  const float factor = *ctx.in(1).as<float>();
  const float* x = ctx.in(0).as<float>();
  float* y = ctx.out(0).as<float>();
  for (int64_t line = 0; line < shape.elements() / area; ++line) {
    const int64_t base = line / channels * area * channels + line % channels;
    double sum = 0;
    for (int64_t i = 0; i < area; ++i) sum += x[base + i * channels];
    const auto mean = static_cast<float>(sum / static_cast<double>(area));
    for (int64_t i = 0; i < area; ++i)
      y[base + i * channels] = (x[base + i * channels] - mean) * factor + mean;
  }
  return absl::OkStatus();
}
FLOE_REGISTER_KERNEL(AdjustContrastv2, kCpu, MakeFunction<AdjustContrast>, DType::kFloat32);

template <class F>
struct Hsv {
  F hue = 0, saturation = 0, value = 0;  // hue in [0, 1)
};

template <class F>
Hsv<F> ToHsv(F r, F g, F b) {
  Hsv<F> c;
  c.value = std::max({r, g, b});
  const F range = c.value - std::min({r, g, b});
  c.saturation = c.value > 0 ? range / c.value : 0;
  if (range > 0) {
    const F unit = F(1) / (F(6) * range);
    c.hue = r == c.value   ? unit * (g - b)
            : g == c.value ? unit * (b - r) + F(2) / F(6)
                           : unit * (r - g) + F(4) / F(6);
    if (c.hue < 0) c.hue += 1;
  }
  return c;
}

template <class F, class T>
void FromHsv(const Hsv<F>& c, T* rgb) {
  const F chroma = c.saturation * c.value, base = c.value - chroma, sector = c.hue * 6;
  const auto part = [&](F shift) { return std::min(std::max(shift, F(0)), F(1)); };
  rgb[0] = static_cast<T>(base + chroma * part(std::abs(sector - 3) - 1));
  rgb[1] = static_cast<T>(base + chroma * part(2 - std::abs(sector - 2)));
  rgb[2] = static_cast<T>(base + chroma * part(2 - std::abs(sector - 4)));
}

template <class Change>
absl::Status AdjustPixels(const KernelContext& ctx, const Change& change) {
  const Shape& shape = ctx.in(0).shape;
  if (shape.dim(shape.rank() - 1) != 3)
    return absl::InvalidArgumentError("images of shape " + shape.ToString() +
                                      " have no 3 channels");
  for (int64_t i = 0; i < shape.elements(); i += 3) {
    const float* rgb = ctx.in(0).as<float>() + i;
    Hsv<float> c = ToHsv(rgb[0], rgb[1], rgb[2]);
    change(&c);
    FromHsv(c, ctx.out(0).as<float>() + i);
  }
  return absl::OkStatus();
}

absl::Status AdjustHue(const KernelContext& ctx) {
  const float delta = *ctx.in(1).as<float>();
  return AdjustPixels(ctx, [delta](Hsv<float>* c) {
    c->hue += delta;
    c->hue -= std::floor(c->hue);
  });
}
absl::Status AdjustSaturation(const KernelContext& ctx) {
  const float scale = *ctx.in(1).as<float>();
  return AdjustPixels(ctx, [scale](Hsv<float>* c) {
    c->saturation = std::min(std::max(c->saturation * scale, 0.0f), 1.0f);
  });
}
FLOE_REGISTER_KERNEL(AdjustHue, kCpu, MakeFunction<AdjustHue>, DType::kFloat32);
FLOE_REGISTER_KERNEL(AdjustSaturation, kCpu, MakeFunction<AdjustSaturation>, DType::kFloat32);

template <class T, bool kToHsv>
absl::Status ConvertColours(const KernelContext& ctx) {
  using C = Compute<T>;
  const Shape& shape = ctx.in(0).shape;
  if (shape.dim(shape.rank() - 1) != 3)
    return absl::InvalidArgumentError("images of shape " + shape.ToString() +
                                      " have no 3 channels");
  for (int64_t i = 0; i < shape.elements(); i += 3) {
    const T* x = ctx.in(0).as<T>() + i;
    T* y = ctx.out(0).as<T>() + i;
    const C a = static_cast<C>(x[0]), b = static_cast<C>(x[1]), c = static_cast<C>(x[2]);
    if constexpr (kToHsv) {
      const Hsv<C> hsv = ToHsv(a, b, c);
      y[0] = static_cast<T>(hsv.hue);
      y[1] = static_cast<T>(hsv.saturation);
      y[2] = static_cast<T>(hsv.value);
    } else {
      FromHsv(Hsv<C>{a, b, c}, y);
    }
  }
  return absl::OkStatus();
}
FLOE_REGISTER_KERNELS(RGBToHSV, kCpu, (MakeFunction<&ConvertColours<T, true>>), Floats);
FLOE_REGISTER_KERNELS(HSVToRGB, kCpu, (MakeFunction<&ConvertColours<T, false>>), Floats);

}  // namespace
}  // namespace floe::kernels
