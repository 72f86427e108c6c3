// ImageProjectiveTransform: each pixel of the result is looked up where the transform takes it.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/run_watch.h"

namespace floe::kernels {
namespace {

enum class Beyond : uint8_t { kConstant, kReflect, kWrap, kNearest };

struct TransformOptions {
  bool bilinear = false;
  Beyond beyond = Beyond::kConstant;
};
TransformOptions OptionsOf(const Attrs& a) {
  const std::string fill = a.String("fill_mode", "CONSTANT");
  return {a.String("interpolation") == "BILINEAR", fill == "REFLECT"   ? Beyond::kReflect
                                                   : fill == "WRAP"    ? Beyond::kWrap
                                                   : fill == "NEAREST" ? Beyond::kNearest
                                                                       : Beyond::kConstant};
}

// How often `size` goes into `at`, as a whole number; what no integer can hold is cut.
float Times(float at, float size) { return std::trunc(std::clamp(at / size, -1e9f, 1e9f)); }

// [abcd] goes on as [dcba|abcd|dcba].
float Reflect(float at, int64_t size) {
  if (size <= 1) return 0;
  const auto length = static_cast<float>(size), twice = 2 * length;
  if (at < 0) {
    if (at < twice) at += twice * Times(-at, twice);
    return at < -length ? at + twice : -at - 1;
  }
  if (at <= length - 1) return at;
  at -= twice * Times(at, twice);
  return at >= length ? twice - at - 1 : at;
}

// [abcd] goes on as [abcd|abcd|abcd].
float Wrap(float at, int64_t size) {
  if (size <= 1) return 0;
  const auto length = static_cast<float>(size), last = length - 1;
  if (at < 0) return at + length * (Times(-at, last) + 1);
  return at > last ? at - length * Times(at, last) : at;
}

float Map(Beyond beyond, float at, int64_t size) {
  if (beyond == Beyond::kConstant) return at;
  if (beyond == Beyond::kReflect) at = Reflect(at, size);
  if (beyond == Beyond::kWrap) at = Wrap(at, size);
  const auto last = static_cast<float>(size - 1);
  return at > 0 ? std::min(at, last) : 0;  // a NaN too
}

// A number as a pixel; what an integer cannot hold becomes its nearest, a NaN 0.
template <class T>
T ToPixel(float value) {
  if constexpr (std::is_integral_v<T>) {
    constexpr auto kLow = static_cast<float>(std::numeric_limits<T>::lowest()),
                   kHigh = static_cast<float>(std::numeric_limits<T>::max());
    if (!(value > kLow)) return value != value ? T(0) : std::numeric_limits<T>::lowest();
    return value < kHigh ? static_cast<T>(value) : std::numeric_limits<T>::max();
  } else {
    return static_cast<T>(static_cast<Compute<T>>(value));
  }
}

template <class T>
struct Image {
  const T* pixels;
  int64_t height, width, channels;
  T fill;

  T At(float y, float x, int64_t c) const {
    if (!(y >= 0 && y < static_cast<float>(height) && x >= 0 && x < static_cast<float>(width)))
      return fill;
    return pixels[(static_cast<int64_t>(y) * width + static_cast<int64_t>(x)) * channels + c];
  }
  T Nearest(float y, float x, int64_t c) const { return At(std::round(y), std::round(x), c); }
  T Bilinear(float y, float x, int64_t c) const {
    using C = Compute<T>;
    const float top = std::floor(y), left = std::floor(x), bottom = top + 1, right = left + 1;
    const auto value = [&](float row, float column) {
      return static_cast<float>(static_cast<C>(At(row, column, c)));
    };
    const float above = (right - x) * value(top, left) + (x - left) * value(top, right),
                below = (right - x) * value(bottom, left) + (x - left) * value(bottom, right);
    return ToPixel<T>((bottom - y) * above + (y - top) * below);
  }
};

// Row y of the result.
template <class T>
void TransformRow(const Image<T>& image, const float* t, const TransformOptions& options, int64_t y,
                  int64_t width, T* to) {
  const auto fy = static_cast<float>(y);
  for (int64_t x = 0; x < width; ++x) {
    const auto fx = static_cast<float>(x);
    const float scale = t[6] * fx + t[7] * fy + 1.0f;
    const float from_x = Map(options.beyond, (t[0] * fx + t[1] * fy + t[2]) / scale, image.width),
                from_y = Map(options.beyond, (t[3] * fx + t[4] * fy + t[5]) / scale, image.height);
    for (int64_t c = 0; c < image.channels; ++c, ++to) {
      *to = scale == 0.0f      ? image.fill
            : options.bilinear ? image.Bilinear(from_y, from_x, c)
                               : image.Nearest(from_y, from_x, c);
    }
  }
}

template <class T>
absl::StatusOr<std::unique_ptr<Kernel>> MakeTransform(const KernelArgs& args) {
  const TransformOptions options = OptionsOf(args.node.attrs);
  return FromFunction([options](const KernelContext& ctx) -> absl::Status {
    const Shape &in = ctx.in(0).shape, &out = ctx.out(0).shape, &transforms = ctx.in(1).shape;
    if (transforms.dim(1) != 8 || (transforms.dim(0) != 1 && transforms.dim(0) != in.dim(0)))
      return absl::InvalidArgumentError(absl::StrCat(
          "Input transform should be num_images x 8 or 1 x 8: ", transforms.ToString()));
    const float fill = ctx.inputs.size() > 3 ? *ctx.in(3).as<float>() : 0.0f;
    const int64_t height = out.dim(1), width = out.dim(2), line = width * out.dim(3),
                  image_size = in.dim(1) * in.dim(2) * in.dim(3);
    return WatchedRange(ctx.pool, out.dim(0) * height, std::max<int64_t>(1, 4096 / (line + 1)),
                        [&](int64_t begin, int64_t end) {
                          for (int64_t row = begin; row < end; ++row) {
                            const int64_t b = row / height, which = transforms.dim(0) == 1 ? 0 : b;
                            const Image<T> image{ctx.in(0).as<T>() + b * image_size, in.dim(1),
                                                 in.dim(2), in.dim(3), ToPixel<T>(fill)};
                            TransformRow(image, ctx.in(1).as<float>() + which * 8, options,
                                         row % height, width, ctx.out(0).as<T>() + row * line);
                          }
                        });
  });
}

FLOE_REGISTER_KERNELS(ImageProjectiveTransformV2, kCpu, MakeTransform<T>,
                      TypeList<uint8_t, int32_t, int64_t, Half, BFloat16, float, double>);
FLOE_REGISTER_KERNELS(ImageProjectiveTransformV3, kCpu, MakeTransform<T>,
                      TypeList<uint8_t, int32_t, int64_t, Half, BFloat16, float, double>);

}  // namespace
}  // namespace floe::kernels
