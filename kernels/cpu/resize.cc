// ResizeBilinear, ResizeNearestNeighbor, ResizeBicubic, ResizeArea and CropAndResize, placing
// pixels as TensorFlow does.
#include "kernels/cpu/resize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/status.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/grid_copy.h"
#include "kernels/cpu/interpolate_f32.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/run_watch.h"

namespace floe::kernels {
namespace {

// Between two looks whether the run should go on.
constexpr int64_t kLinesOfALook = 64, kPixelsOfALook = 4096;

struct Options {
  bool align_corners = false, half_pixel = false;
  InterpolateF32 interpolate = nullptr;
};
Options OptionsOf(const Attrs& attrs) {
  return {attrs.Bool("align_corners"), attrs.Bool("half_pixel_centers"), PickInterpolateF32()};
}

// A weighted sum of at most four input places along one axis.
struct Taps {
  std::array<int64_t, 4> at{};
  std::array<float, 4> weight{};
};
using Axis = BudgetVector<Taps>;

Axis Bilinear(int64_t in, int64_t out, const Options& options) {
  const float scale = ScaleOf(in, out, options.align_corners);
  Axis axis(out);
  for (int64_t o = 0; o < out; ++o) {
    const float source = SourceOf(o, scale, options.half_pixel), floor = std::floor(source);
    const auto low = static_cast<int64_t>(floor);
    axis[o].at = {std::max<int64_t>(low, 0),
                  std::min<int64_t>(static_cast<int64_t>(std::ceil(source)), in - 1), 0, 0};
    axis[o].at[0] = std::min(axis[o].at[0], in - 1);
    axis[o].at[1] = std::max<int64_t>(axis[o].at[1], 0);
    axis[o].weight = {1 - (source - floor), source - floor, 0, 0};
  }
  return axis;
}

// Keys' cubic with a = -0.5 for half pixels, -0.75 otherwise; TensorFlow rounds the fraction to
// 1/1024 and, with half pixels, leaves out places beyond the border.
Axis Bicubic(int64_t in, int64_t out, const Options& options) {
  constexpr int kSteps = 1024;
  const double a = options.half_pixel ? -0.5 : -0.75;
  const float scale = ScaleOf(in, out, options.align_corners);
  const auto near = [a](double x) {
    return static_cast<float>(((a + 2) * x - (a + 3)) * x * x + 1);
  };
  const auto far = [a](double x) {
    return static_cast<float>(((a * x - 5 * a) * x + 8 * a) * x - 4 * a);
  };
  Axis axis(out);
  for (int64_t o = 0; o < out; ++o) {
    const float source = SourceOf(o, scale, options.half_pixel);
    const auto floor = static_cast<int64_t>(std::floor(source));
    const auto step = static_cast<int>(std::lrint((source - static_cast<float>(floor)) * kSteps));
    const double x = static_cast<double>(step) / kSteps, y = 1 - x;
    axis[o].weight = {far(x + 1), near(x), near(y), far(y + 1)};
    float sum = 0;
    for (int k = 0; k < 4; ++k) {
      const int64_t place = floor - 1 + k;
      axis[o].at[k] = std::min(std::max<int64_t>(place, 0), in - 1);
      if (options.half_pixel && place != axis[o].at[k]) axis[o].weight[k] = 0;
      sum += axis[o].weight[k];
    }
    for (int k = 0;
         options.half_pixel && std::abs(sum) >= 1000 * std::numeric_limits<float>::min() && k < 4;
         ++k)
      axis[o].weight[k] /= sum;
  }
  return axis;
}

absl::Status CheckImage(const KernelContext& ctx) {
  const Shape& in = ctx.in(0).shape;
  if (in.elements() != 0 || ctx.out(0).elements() == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("an image of ", in.ToString(), " has nothing to resize"));
}

// One input row at the output's columns, `to` in the order of the output.
template <class T>
void AcrossRow(const T* row, const Axis& cols, int64_t channels, InterpolateF32 interpolate,
               float* to) {
  constexpr int64_t kFewChannels = 4;  // a call costs more than it saves
  for (const Taps& q : cols) {
    if constexpr (std::is_same_v<T, float>) {
      if (channels > kFewChannels) {
        interpolate(row + q.at[0] * channels, row + q.at[1] * channels, q.weight[1], to,
                    static_cast<size_t>(channels));
        to += channels;
        continue;
      }
    }
    const T *left = row + q.at[0] * channels, *right = row + q.at[1] * channels;
    for (int64_t c = 0; c < channels; ++c) {
      const auto first = static_cast<float>(static_cast<Compute<T>>(left[c])),
                 second = static_cast<float>(static_cast<Compute<T>>(right[c]));
      *to++ = first + (second - first) * q.weight[1];
    }
  }
}

// Rows are interpolated across once and kept while the next output rows need them.
template <class T>
absl::Status ResizeBilinear(const KernelContext& ctx, const Options& options) {
  FLOE_RETURN_IF_ERROR(CheckImage(ctx));
  const Shape &in = ctx.in(0).shape, &out = ctx.out(0).shape;
  if (out.elements() == 0) return absl::OkStatus();
  const Axis rows = Bilinear(in.dim(1), out.dim(1), options),
             cols = Bilinear(in.dim(2), out.dim(2), options);
  const int64_t channels = in.dim(3), in_row = in.dim(2) * channels,
                out_row = out.dim(2) * channels;
  const T* x = ctx.in(0).as<T>();
  float* y = ctx.out(0).as<float>();
  return WatchedRange(
      ctx.pool, out.dim(0) * out.dim(1), std::max<int64_t>(1, kElementGrain / out_row),
      [&](int64_t begin, int64_t end) {
        std::vector<float> kept[2] = {std::vector<float>(out_row), std::vector<float>(out_row)};
        int64_t held[2] = {-1, -1};
        for (int64_t line = begin; line < end; ++line) {
          const Taps& r = rows[line % out.dim(1)];
          const int64_t image = line / out.dim(1) * in.dim(1);
          const int64_t wanted[2] = {image + r.at[0], image + r.at[1]};
          if (held[1] == wanted[0]) {
            kept[0].swap(kept[1]);
            std::swap(held[0], held[1]);
          }
          for (int k = 0; k < 2; ++k) {
            if (held[k] == wanted[k]) continue;
            AcrossRow(x + wanted[k] * in_row, cols, channels, options.interpolate, kept[k].data());
            held[k] = wanted[k];
          }
          options.interpolate(kept[0].data(), kept[1].data(), r.weight[1], y + line * out_row,
                              static_cast<size_t>(out_row));
        }
      });
}

template <class T>
absl::Status ResizeBicubic(const KernelContext& ctx, const Options& options) {
  constexpr int kTaps = 4;
  FLOE_RETURN_IF_ERROR(CheckImage(ctx));
  const Shape &in = ctx.in(0).shape, &out = ctx.out(0).shape;
  if (out.elements() == 0) return absl::OkStatus();
  const Axis rows = Bicubic(in.dim(1), out.dim(1), options),
             cols = Bicubic(in.dim(2), out.dim(2), options);
  const int64_t channels = in.dim(3), in_row = in.dim(2) * channels, in_image = in.dim(1) * in_row,
                out_row = out.dim(2) * channels;
  const T* x = ctx.in(0).as<T>();
  float* y = ctx.out(0).as<float>();
  return WatchedRange(
      ctx.pool, out.dim(0) * out.dim(1), std::max<int64_t>(1, kElementGrain / (out_row * kTaps)),
      [&](int64_t begin, int64_t end) {
        for (int64_t line = begin; line < end; ++line) {
          const T* image = x + line / out.dim(1) * in_image;
          const Taps& r = rows[line % out.dim(1)];
          for (int64_t o = 0; o < out.dim(2); ++o) {
            const Taps& q = cols[o];
            for (int64_t c = 0; c < channels; ++c) {
              float value = 0;
              for (int i = 0; i < kTaps; ++i) {
                const T* from = image + r.at[i] * in_row + c;
                float across = 0;
                for (int k = 0; k < kTaps; ++k)
                  across += q.weight[k] *
                            static_cast<float>(static_cast<Compute<T>>(from[q.at[k] * channels]));
                value += r.weight[i] * across;
              }
              y[line * out_row + o * channels + c] = value;
            }
          }
        }
      });
}

int64_t NearestOf(int64_t o, float scale, int64_t in, const Options& options) {
  const float source =
      options.half_pixel ? (static_cast<float>(o) + 0.5f) * scale : static_cast<float>(o) * scale;
  const float place = options.align_corners ? std::round(source) : std::floor(source);
  return std::min(std::max<int64_t>(static_cast<int64_t>(place), 0), in - 1);
}

absl::Status Nearest(const KernelContext& ctx, const Options& options) {
  FLOE_RETURN_IF_ERROR(CheckImage(ctx));
  const Shape &in = ctx.in(0).shape, &out = ctx.out(0).shape;
  if (out.elements() == 0) return absl::OkStatus();
  const auto size = static_cast<int64_t>(DTypeSize(ctx.in(0).dtype));
  const int64_t channels = in.dim(3);
  const float row_scale = ScaleOf(in.dim(1), out.dim(1), options.align_corners),
              col_scale = ScaleOf(in.dim(2), out.dim(2), options.align_corners);
  RunWatch watch;
  for (int64_t line = 0; line < out.dim(0) * out.dim(1); ++line) {
    if (line % kLinesOfALook == 0 && watch.Stopped()) return watch.status();
    const int64_t row =
        line / out.dim(1) * in.dim(1) + NearestOf(line % out.dim(1), row_scale, in.dim(1), options);
    for (int64_t o = 0; o < out.dim(2); ++o) {
      const int64_t from =
          (row * in.dim(2) + NearestOf(o, col_scale, in.dim(2), options)) * channels;
      CopyElements(ctx.in(0).dtype, ctx.in(0).as<char>() + from * size,
                   ctx.out(0).as<char>() + (line * out.dim(2) + o) * channels * size, channels);
    }
  }
  return absl::OkStatus();
}

// Mean over the input area of each output pixel, its border pixels in part.
template <class T>
absl::Status Area(const KernelContext& ctx, const Options& options) {
  FLOE_RETURN_IF_ERROR(CheckImage(ctx));
  const Shape &in = ctx.in(0).shape, &out = ctx.out(0).shape;
  const int64_t channels = in.dim(3);
  const float row_scale = ScaleOf(in.dim(1), out.dim(1), options.align_corners),
              col_scale = ScaleOf(in.dim(2), out.dim(2), options.align_corners);
  const float area = 1 / (row_scale * col_scale);
  // How much of a pixel lies in [begin, end). An area inside one pixel counts with its exact size,
  // not with a rounded difference.
  const auto part = [](int64_t place, float begin, float end, float size) {
    const auto low = static_cast<float>(place);
    if (low < begin && low + 1 > end) return size;
    return std::min(low + 1, end) - std::max(low, begin);
  };
  RunWatch watch;
  for (int64_t i = 0; i < out.elements(); ++i) {
    if (i % kPixelsOfALook == 0 && watch.Stopped()) return watch.status();
    const int64_t c = i % channels, ox = i / channels % out.dim(2),
                  oy = i / channels / out.dim(2) % out.dim(1),
                  n = i / channels / out.dim(2) / out.dim(1);
    const float top = static_cast<float>(oy) * row_scale,
                bottom = static_cast<float>(oy + 1) * row_scale;
    const float left = static_cast<float>(ox) * col_scale,
                right = static_cast<float>(ox + 1) * col_scale;
    float sum = 0;
    for (auto r = static_cast<int64_t>(std::floor(top));
         r < static_cast<int64_t>(std::ceil(bottom)); ++r) {
      float across = 0;
      for (auto q = static_cast<int64_t>(std::floor(left));
           q < static_cast<int64_t>(std::ceil(right)); ++q) {
        const int64_t row = std::min(r, in.dim(1) - 1), col = std::min(q, in.dim(2) - 1);
        const T value = ctx.in(0).as<T>()[((n * in.dim(1) + row) * in.dim(2) + col) * channels + c];
        across +=
            static_cast<float>(static_cast<Compute<T>>(value)) * part(q, left, right, col_scale);
      }
      sum += across * part(r, top, bottom, row_scale);
    }
    ctx.out(0).as<float>()[i] = sum * area;
  }
  return absl::OkStatus();
}

struct CropOptions {
  bool nearest;
  float outside;
};

// Boxes [y1, x1, y2, x2] in units of the image; samples beyond it take the extrapolation value.
template <class T>
absl::Status Crop(const KernelContext& ctx, const CropOptions& options) {
  const Shape &in = ctx.in(0).shape, &out = ctx.out(0).shape;
  IntList images;
  FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(2), &images));
  if (static_cast<int64_t>(images.size()) != out.dim(0))
    return absl::InvalidArgumentError(
        absl::StrCat(images.size(), " image numbers for ", out.dim(0), " boxes"));
  const float* boxes = ctx.in(1).as<float>();
  float* y = ctx.out(0).as<float>();
  const int64_t channels = in.dim(3);
  const float last_row = static_cast<float>(in.dim(1) - 1),
              last_col = static_cast<float>(in.dim(2) - 1);
  const auto sample = [](float from, float to, float last, int64_t o, int64_t count) {
    return count > 1 ? from * last + static_cast<float>(o) *
                                         ((to - from) * last / static_cast<float>(count - 1))
                     : 0.5f * (from + to) * last;
  };
  RunWatch watch;
  for (int64_t b = 0; b < out.dim(0); ++b) {
    if (watch.Stopped()) return watch.status();
    if (images[b] < 0 || images[b] >= in.dim(0))
      return absl::InvalidArgumentError(
          absl::StrCat("image ", images[b], " is not in [0, ", in.dim(0), ")"));
    const T* image = ctx.in(0).as<T>() + images[b] * in.dim(1) * in.dim(2) * channels;
    // Places of images of more than 2^24 lines round up beyond the last.
    const auto at = [&](int64_t row, int64_t col, int64_t c) {
      row = std::min(row, in.dim(1) - 1);
      col = std::min(col, in.dim(2) - 1);
      return static_cast<float>(
          static_cast<Compute<T>>(image[(row * in.dim(2) + col) * channels + c]));
    };
    for (int64_t i = 0; i < out.dim(1) * out.dim(2) * channels; ++i) {
      const int64_t c = i % channels, ox = i / channels % out.dim(2),
                    oy = i / channels / out.dim(2);
      const float row = sample(boxes[b * 4], boxes[b * 4 + 2], last_row, oy, out.dim(1));
      const float col = sample(boxes[b * 4 + 1], boxes[b * 4 + 3], last_col, ox, out.dim(2));
      float& to = y[b * out.dim(1) * out.dim(2) * channels + i];
      if (!(row >= 0 && row <= last_row && col >= 0 && col <= last_col)) {
        to = options.outside;
      } else if (options.nearest) {
        to = at(static_cast<int64_t>(std::round(row)), static_cast<int64_t>(std::round(col)), c);
      } else {
        const auto top = static_cast<int64_t>(std::floor(row)),
                   left = static_cast<int64_t>(std::floor(col));
        const auto bottom = static_cast<int64_t>(std::ceil(row)),
                   right = static_cast<int64_t>(std::ceil(col));
        const float dx = col - static_cast<float>(left), dy = row - static_cast<float>(top);
        const float upper = at(top, left, c) + (at(top, right, c) - at(top, left, c)) * dx;
        const float lower = at(bottom, left, c) + (at(bottom, right, c) - at(bottom, left, c)) * dx;
        to = upper + (lower - upper) * dy;
      }
    }
  }
  return absl::OkStatus();
}

template <absl::Status (*kRun)(const KernelContext&, const Options&)>
absl::StatusOr<std::unique_ptr<Kernel>> Make(const KernelArgs& args) {
  const Options options = OptionsOf(args.node.attrs);
  return FromFunction([options](const KernelContext& ctx) { return kRun(ctx, options); });
}
FLOE_REGISTER_KERNEL(ResizeNearestNeighbor, kCpu, Make<Nearest>);

template <class T>
absl::StatusOr<std::unique_ptr<Kernel>> MakeCrop(const KernelArgs& args) {
  const CropOptions options{args.node.attrs.String("method", "bilinear") == "nearest",
                            args.node.attrs.Float("extrapolation_value", 0)};
  return FromFunction([options](const KernelContext& ctx) { return Crop<T>(ctx, options); });
}

template <class... Ts>
bool Register(TypeList<Ts...>) {
  (KernelRegistrar("ResizeBilinear", DeviceKind::kCpu, {kDTypeOf<Ts>}, &Make<&ResizeBilinear<Ts>>),
   ...);
  (KernelRegistrar("ResizeBicubic", DeviceKind::kCpu, {kDTypeOf<Ts>}, &Make<&ResizeBicubic<Ts>>),
   ...);
  (KernelRegistrar("ResizeArea", DeviceKind::kCpu, {kDTypeOf<Ts>}, &Make<&Area<Ts>>), ...);
  (KernelRegistrar("CropAndResize", DeviceKind::kCpu, {kDTypeOf<Ts>}, &MakeCrop<Ts>), ...);
  return true;
}
const bool kRegistered = Register(Reals{});

}  // namespace
}  // namespace floe::kernels
