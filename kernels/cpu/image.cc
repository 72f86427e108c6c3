// Colours of images, and local response normalisation.
#include <algorithm>
#include <cmath>

#include "base/status.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/grid_copy.h"
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

struct Hsv {
  float hue = 0, saturation = 0, value = 0;  // hue in [0, 1)
};

Hsv ToHsv(const float* rgb) {
  const float r = rgb[0], g = rgb[1], b = rgb[2];
  Hsv c;
  c.value = std::max({r, g, b});
  const float range = c.value - std::min({r, g, b});
  c.saturation = c.value > 0 ? range / c.value : 0;
  if (range > 0) {
    const float unit = 1.0f / (6.0f * range);
    c.hue = r == c.value   ? unit * (g - b)
            : g == c.value ? unit * (b - r) + 2.0f / 6.0f
                           : unit * (r - g) + 4.0f / 6.0f;
    if (c.hue < 0) c.hue += 1;
  }
  return c;
}

void FromHsv(const Hsv& c, float* rgb) {
  const float chroma = c.saturation * c.value, base = c.value - chroma, sector = c.hue * 6;
  const auto part = [&](float shift) { return std::min(std::max(shift, 0.0f), 1.0f); };
  rgb[0] = base + chroma * part(std::abs(sector - 3) - 1);
  rgb[1] = base + chroma * part(2 - std::abs(sector - 2));
  rgb[2] = base + chroma * part(2 - std::abs(sector - 4));
}

template <class Change>
absl::Status AdjustPixels(const KernelContext& ctx, const Change& change) {
  const Shape& shape = ctx.in(0).shape;
  if (shape.dim(shape.rank() - 1) != 3)
    return absl::InvalidArgumentError("images of shape " + shape.ToString() +
                                      " have no 3 channels");
  for (int64_t i = 0; i < shape.elements(); i += 3) {
    Hsv c = ToHsv(ctx.in(0).as<float>() + i);
    change(&c);
    FromHsv(c, ctx.out(0).as<float>() + i);
  }
  return absl::OkStatus();
}

absl::Status AdjustHue(const KernelContext& ctx) {
  const float delta = *ctx.in(1).as<float>();
  return AdjustPixels(ctx, [delta](Hsv* c) {
    c->hue += delta;
    c->hue -= std::floor(c->hue);
  });
}
absl::Status AdjustSaturation(const KernelContext& ctx) {
  const float scale = *ctx.in(1).as<float>();
  return AdjustPixels(ctx, [scale](Hsv* c) {
    c->saturation = std::min(std::max(c->saturation * scale, 0.0f), 1.0f);
  });
}
FLOE_REGISTER_KERNEL(AdjustHue, kCpu, MakeFunction<AdjustHue>, DType::kFloat32);
FLOE_REGISTER_KERNEL(AdjustSaturation, kCpu, MakeFunction<AdjustSaturation>, DType::kFloat32);

// x / (bias + alpha * sum of squares of the channels around)^beta.
template <class T>
absl::StatusOr<std::unique_ptr<Kernel>> MakeLrn(const KernelArgs& args) {
  const auto& a = args.node.attrs;
  const int64_t radius = std::clamp<int64_t>(a.Int("depth_radius", 5), -1, INT32_MAX);
  const float bias = a.Float("bias", 1), alpha = a.Float("alpha", 1), beta = a.Float("beta", 0.5f);
  return FromFunction([=](const KernelContext& ctx) {
    const Shape& shape = ctx.in(0).shape;
    const int64_t depth = shape.dim(3);
    const T* x = ctx.in(0).as<T>();
    for (int64_t i = 0; i < shape.elements(); ++i) {
      const int64_t c = i % depth, first = std::max<int64_t>(0, c - radius),
                    last = std::min(depth - 1, c + radius);
      float sum = 0;
      for (int64_t k = first; k <= last; ++k) {
        const auto value = static_cast<float>(x[i - c + k]);
        sum += value * value;
      }
      ctx.out(0).as<T>()[i] =
          static_cast<T>(static_cast<float>(x[i]) * std::pow(bias + alpha * sum, -beta));
    }
    return absl::OkStatus();
  });
}
FLOE_REGISTER_KERNEL(LRN, kCpu, MakeLrn<float>, DType::kFloat32);
FLOE_REGISTER_KERNEL(LRN, kCpu, MakeLrn<Half>, DType::kFloat16);
FLOE_REGISTER_KERNEL(LRN, kCpu, MakeLrn<BFloat16>, DType::kBFloat16);

}  // namespace
}  // namespace floe::kernels
