// ScaleAndTranslate: images resampled along both axes with a kernel of choice.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/status.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/move/grid_copy.h"

namespace floe::kernels {
namespace {

// The weight at a distance (>= 0), nothing past the radius.
struct Filter {
  float radius;
  float (*weight)(float x, float radius);
};

float Lanczos(float x, float radius) {
  constexpr float kPi = 3.14159265358979323846f;
  if (x > radius) return 0;
  if (x <= 1e-3f) return 1;
  return radius * std::sin(kPi * x) * std::sin(kPi * x / radius) / (kPi * kPi * x * x);
}
float Gaussian(float x, float radius) {
  const float sigma = radius / 3;
  return x >= radius ? 0 : std::exp(-x * x / (2 * sigma * sigma));
}
float Box(float x, float) { return x < 0.5f ? 1 : x == 0.5f ? 0.5f : 0; }
float Triangle(float x, float) { return x < 1 ? 1 - x : 0; }
float KeysCubic(float x, float) {
  if (x >= 2) return 0;
  if (x >= 1) return ((-0.5f * x + 2.5f) * x - 4) * x + 2;
  return (1.5f * x - 2.5f) * x * x + 1;
}
float MitchellCubic(float x, float) {
  if (x >= 2) return 0;
  if (x >= 1) return ((-7.0f / 18 * x + 2) * x - 10.0f / 3) * x + 16.0f / 9;
  return (7.0f / 6 * x - 2) * x * x + 8.0f / 9;
}

Filter FilterOf(const std::string& name) {
  if (name == "lanczos1") return {1, Lanczos};
  if (name == "lanczos5") return {5, Lanczos};
  if (name == "gaussian") return {1.5f, Gaussian};
  if (name == "box") return {0.5f, Box};
  if (name == "triangle") return {1, Triangle};
  if (name == "keyscubic") return {2, KeysCubic};
  if (name == "mitchellcubic") return {2, MitchellCubic};
  return {3, Lanczos};
}

// For each place of the output the places of the input that are added, with weights.
struct Spans {
  int64_t width = 0;  // most places of one
  BudgetVector<int64_t> first, count;
  BudgetVector<float> weights;  // width of each
};

absl::StatusOr<Spans> SpansOf(const Filter& filter, bool antialias, int64_t in, int64_t out,
                              float scale, float translation) {
  if (!(scale > 0) || !std::isfinite(translation))
    return absl::InvalidArgumentError(
        absl::StrCat("scale ", scale, " and translation ", translation, ", expected a scale > 0"));
  const float inverse = 1 / scale, shift = -inverse * translation,
              stretch = antialias ? std::max(inverse, 1.0f) : 1.0f, reach = filter.radius * stretch;
  Spans spans;
  spans.width = static_cast<int64_t>(
      std::min(2 * std::ceil(static_cast<double>(reach)) + 1, static_cast<double>(in)));
  spans.first.assign(out, 0);
  spans.count.assign(out, 0);
  spans.weights.assign(out * spans.width, 0.0f);
  const auto place = [in](float x) {
    return static_cast<int64_t>(std::clamp<double>(x, 0, static_cast<double>(in - 1)));
  };
  for (int64_t o = 0; o < out; ++o) {
    const float centre = (static_cast<float>(o) + 0.5f) * inverse + shift;
    if (!(centre >= 0) || centre > static_cast<float>(in)) continue;  // outside: black
    const int64_t first = place(std::ceil(centre - reach - 0.5f)),
                  last = place(std::floor(centre + reach - 0.5f));
    float* const weights = spans.weights.data() + o * spans.width;
    float sum = 0;
    spans.first[o] = first;
    for (int64_t i = first; i <= std::min(last, first + spans.width - 1); ++i) {
      const float offset = static_cast<float>(i) + 0.5f - centre;
      weights[spans.count[o]] = filter.weight(std::abs(offset * (1 / stretch)), filter.radius);
      sum += weights[spans.count[o]++];
    }
    const float factor = std::abs(sum) >= 1000 * std::numeric_limits<float>::min() ? 1 / sum : 0.0f;
    for (int64_t i = 0; i < spans.count[o]; ++i) weights[i] *= factor;
  }
  return spans;
}

// out[line][o][k] = sum of weights * in[line][i][k]: `inner` numbers lie side by side.
template <class T>
absl::Status Gather(const Spans& spans, const T* in, float* out, int64_t lines, int64_t in_size,
                    int64_t inner) {
  const auto out_size = static_cast<int64_t>(spans.first.size());
  for (int64_t line = 0; line < lines; ++line) {
    for (int64_t o = 0; o < out_size; ++o) {
      if (o % 64 == 0) FLOE_RETURN_IF_ERROR(CheckRunTime());
      float* to = out + (line * out_size + o) * inner;
      std::fill_n(to, inner, 0.0f);
      for (int64_t i = 0; i < spans.count[o]; ++i) {
        const float weight = spans.weights[o * spans.width + i];
        const T* from = in + (line * in_size + spans.first[o] + i) * inner;
        for (int64_t k = 0; k < inner; ++k) to[k] += weight * static_cast<float>(from[k]);
      }
    }
  }
  return absl::OkStatus();
}

template <class T>
absl::Status Run(const KernelContext& ctx, const Filter& filter, bool antialias) {
  const TensorView &in = ctx.in(0), &out = ctx.out(0);
  if (ctx.in(2).elements() != 2 || ctx.in(3).elements() != 2)
    return absl::InvalidArgumentError("scale and translation are not two numbers each");
  if (out.elements() == 0) return absl::OkStatus();
  if (in.elements() == 0) return absl::InvalidArgumentError("the images are empty");
  const float *scale = ctx.in(2).as<float>(), *translation = ctx.in(3).as<float>();
  FLOE_ASSIGN_OR_RETURN(const Spans rows, SpansOf(filter, antialias, in.shape.dim(1),
                                                  out.shape.dim(1), scale[0], translation[0]));
  FLOE_ASSIGN_OR_RETURN(const Spans columns, SpansOf(filter, antialias, in.shape.dim(2),
                                                     out.shape.dim(2), scale[1], translation[1]));
  const int64_t images = in.shape.dim(0), width = in.shape.dim(2), channels = in.shape.dim(3);
  BudgetVector<float> between(images * out.shape.dim(1) * width * channels);
  FLOE_RETURN_IF_ERROR(
      Gather(rows, in.as<T>(), between.data(), images, in.shape.dim(1), width * channels));
  return Gather(columns, between.data(), out.as<float>(), images * out.shape.dim(1), width,
                channels);
}

template <class T>
absl::StatusOr<std::unique_ptr<Kernel>> MakeScaleTranslate(const KernelArgs& args) {
  const Filter filter = FilterOf(args.node.attrs.String("kernel_type", "lanczos3"));
  const bool antialias = args.node.attrs.Bool("antialias", true);
  return FromFunction(
      [filter, antialias](const KernelContext& ctx) { return Run<T>(ctx, filter, antialias); });
}
FLOE_REGISTER_KERNELS(
    ScaleAndTranslate, kCpu, MakeScaleTranslate<T>,
    TypeList<int8_t, uint8_t, int16_t, uint16_t, int32_t, int64_t, BFloat16, Half, float, double>);

}  // namespace
}  // namespace floe::kernels
