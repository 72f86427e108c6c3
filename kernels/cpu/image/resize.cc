// ResizeBilinear, ResizeNearestNeighbor, ResizeBicubic, ResizeArea and CropAndResize, placing
// pixels as TensorFlow does.
#include "kernels/cpu/image/resize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/status.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/image/area_f32.h"
#include "kernels/cpu/image/interpolate_f32.h"
#include "kernels/cpu/move/grid_copy.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/run_watch.h"

namespace floe::kernels {
namespace {

constexpr int64_t kFewChannels = 4;  // of a pixel: a call costs more than it saves

struct ResizeOptions {
  bool align_corners = false, half_pixel = false;
  InterpolateF32 interpolate = nullptr;
  WeighFourF32 weigh_four = nullptr;
  AreaF32 area = nullptr;
};
ResizeOptions ResizeOptionsOf(const Attrs& attrs) {
  return {attrs.Bool("align_corners"), attrs.Bool("half_pixel_centers"), PickInterpolateF32(),
          PickWeighFourF32(), PickAreaF32()};
}

// A weighted sum of at most four input places along one axis.
struct Taps {
  std::array<int64_t, 4> at{};
  std::array<float, 4> weight{};
};
using TapsOfAxis = BudgetVector<Taps>;

TapsOfAxis Bilinear(int64_t in, int64_t out, const ResizeOptions& options) {
  const float scale = ScaleOf(in, out, options.align_corners);
  TapsOfAxis axis(out);
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
TapsOfAxis Bicubic(int64_t in, int64_t out, const ResizeOptions& options) {
  constexpr int kSteps = 1024;
  const double a = options.half_pixel ? -0.5 : -0.75;
  const float scale = ScaleOf(in, out, options.align_corners);
  const auto near = [a](double x) {
    return static_cast<float>(((a + 2) * x - (a + 3)) * x * x + 1);
  };
  const auto far = [a](double x) {
    return static_cast<float>(((a * x - 5 * a) * x + 8 * a) * x - 4 * a);
  };
  TapsOfAxis axis(out);
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
void AcrossRow(const T* row, const TapsOfAxis& cols, int64_t channels, InterpolateF32 interpolate,
               float* to) {
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
absl::Status ResizeBilinear(const KernelContext& ctx, const ResizeOptions& options) {
  FLOE_RETURN_IF_ERROR(CheckImage(ctx));
  const Shape &in = ctx.in(0).shape, &out = ctx.out(0).shape;
  if (out.elements() == 0) return absl::OkStatus();
  const TapsOfAxis rows = Bilinear(in.dim(1), out.dim(1), options),
                   cols = Bilinear(in.dim(2), out.dim(2), options);
  const int64_t channels = in.dim(3), in_row = in.dim(2) * channels,
                out_row = out.dim(2) * channels, pixel = ctx.OutLineStride(0);
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
          // All pixels at once where they follow each other.
          const int64_t piece = pixel == channels ? out_row : channels;
          float* to = y + line * out.dim(2) * pixel;
          for (int64_t at = 0; at < out_row; at += piece, to += pixel) {
            options.interpolate(kept[0].data() + at, kept[1].data() + at, r.weight[1], to,
                                static_cast<size_t>(piece));
          }
        }
      });
}

// One input row at the output's columns, as AcrossRow, weighing four places each.
template <class T>
void AcrossRowCubic(const T* row, const TapsOfAxis& cols, int64_t channels, WeighFourF32 weigh,
                    float* to) {
  for (const Taps& q : cols) {
    std::array<const T*, 4> from;
    for (int k = 0; k < 4; ++k) from[k] = row + q.at[k] * channels;
    if constexpr (std::is_same_v<T, float>) {
      if (channels > kFewChannels) {
        weigh(from.data(), q.weight.data(), to, static_cast<size_t>(channels));
        to += channels;
        continue;
      }
    }
    for (int64_t c = 0; c < channels; ++c) {
      float across = 0;
      for (int k = 0; k < 4; ++k)
        across += q.weight[k] * static_cast<float>(static_cast<Compute<T>>(from[k][c]));
      *to++ = across;
    }
  }
}

// Rows are interpolated across once and kept while the next output rows need them.
template <class T>
absl::Status ResizeBicubic(const KernelContext& ctx, const ResizeOptions& options) {
  FLOE_RETURN_IF_ERROR(CheckImage(ctx));
  const Shape &in = ctx.in(0).shape, &out = ctx.out(0).shape;
  if (out.elements() == 0) return absl::OkStatus();
  const TapsOfAxis rows = Bicubic(in.dim(1), out.dim(1), options),
                   cols = Bicubic(in.dim(2), out.dim(2), options);
  const int64_t channels = in.dim(3), in_row = in.dim(2) * channels,
                out_row = out.dim(2) * channels;
  const T* x = ctx.in(0).as<T>();
  float* y = ctx.out(0).as<float>();
  return WatchedRange(ctx.pool, out.dim(0) * out.dim(1),
                      std::max<int64_t>(1, kElementGrain / (out_row * 4)),
                      [&](int64_t begin, int64_t end) {
                        // Input row r is kept in place r % 4: the rows of one output row are within
                        // four.
                        std::array<std::vector<float>, 4> kept;
                        std::array<int64_t, 4> held;
                        held.fill(-1);
                        for (auto& row : kept) row.resize(out_row);
                        for (int64_t line = begin; line < end; ++line) {
                          const Taps& r = rows[line % out.dim(1)];
                          const int64_t image = line / out.dim(1) * in.dim(1);
                          std::array<const float*, 4> from;
                          for (int k = 0; k < 4; ++k) {
                            const int64_t wanted = image + r.at[k], place = r.at[k] % 4;
                            if (held[place] != wanted) {
                              AcrossRowCubic(x + wanted * in_row, cols, channels,
                                             options.weigh_four, kept[place].data());
                              held[place] = wanted;
                            }
                            from[k] = kept[place].data();
                          }
                          options.weigh_four(from.data(), r.weight.data(), y + line * out_row,
                                             static_cast<size_t>(out_row));
                        }
                      });
}

int64_t NearestOf(int64_t o, float scale, int64_t in, const ResizeOptions& options) {
  const float source =
      options.half_pixel ? (static_cast<float>(o) + 0.5f) * scale : static_cast<float>(o) * scale;
  const float place = options.align_corners ? std::round(source) : std::floor(source);
  return std::min(std::max<int64_t>(static_cast<int64_t>(place), 0), in - 1);
}

absl::Status Nearest(const KernelContext& ctx, const ResizeOptions& options) {
  FLOE_RETURN_IF_ERROR(CheckImage(ctx));
  const Shape &in = ctx.in(0).shape, &out = ctx.out(0).shape;
  if (out.elements() == 0) return absl::OkStatus();
  const DType dtype = ctx.in(0).dtype;
  const auto size = static_cast<int64_t>(DTypeSize(dtype));
  const int64_t channels = in.dim(3), in_row = in.dim(2) * channels * size,
                pixel = ctx.OutLineStride(0) * size, out_row = out.dim(2) * pixel;
  const float row_scale = ScaleOf(in.dim(1), out.dim(1), options.align_corners),
              col_scale = ScaleOf(in.dim(2), out.dim(2), options.align_corners);
  BudgetVector<int64_t> cols(out.dim(2));  // in bytes
  for (int64_t o = 0; o < out.dim(2); ++o)
    cols[o] = NearestOf(o, col_scale, in.dim(2), options) * channels * size;
  return WatchedRange(ctx.pool, out.dim(0) * out.dim(1),
                      std::max<int64_t>(1, kElementGrain / (out.dim(2) * channels)),
                      [&](int64_t begin, int64_t end) {
                        int64_t held = -1;  // the row that the line before has
                        for (int64_t line = begin; line < end; ++line) {
                          const int64_t row =
                              line / out.dim(1) * in.dim(1) +
                              NearestOf(line % out.dim(1), row_scale, in.dim(1), options);
                          const char* from = ctx.in(0).as<char>() + row * in_row;
                          char* to = ctx.out(0).as<char>() + line * out_row;
                          if (row == held && pixel == channels * size) {
                            CopyElements(dtype, to - out_row, to, out.dim(2) * channels);
                            continue;
                          }
                          for (const int64_t col : cols) {
                            CopyElements(dtype, from + col, to, channels);
                            to += pixel;
                          }
                          held = row;
                        }
                      });
}

// What the output places of one axis cover.
struct Coverage {
  BudgetVector<Covered> pixels;
  BudgetVector<float> weights;
  BudgetVector<int64_t> places;  // of each weight, in elements of the image
};

// `size`: elements from one of the `in` places to the next. Places beyond the last are the last.
Coverage CoverageOf(int64_t in, int64_t out, float scale, int64_t size) {
  // How much of a pixel lies in [begin, end). An area inside one pixel counts with its exact size,
  // not with a rounded difference.
  const auto part = [scale](int64_t place, float begin, float end) {
    const auto low = static_cast<float>(place);
    if (low < begin && low + 1 > end) return scale;
    return std::min(low + 1, end) - std::max(low, begin);
  };
  Coverage coverage;
  for (int64_t o = 0; o < out; ++o) {
    const float begin = static_cast<float>(o) * scale, end = static_cast<float>(o + 1) * scale;
    const auto first = static_cast<int64_t>(std::floor(begin)),
               last = static_cast<int64_t>(std::ceil(end));
    coverage.pixels.push_back({last - first, static_cast<int64_t>(coverage.weights.size())});
    for (int64_t place = first; place < last; ++place) {
      coverage.weights.push_back(part(place, begin, end));
      coverage.places.push_back(std::min(place, in - 1) * size);
    }
  }
  return coverage;
}

// AreaF32 for images of any dtype, and its oracle.
template <class T>
void AreaOf(const AreaLine& line, const T* image, float* y) {
  for (size_t i = 0; i < line.pixel_count; ++i) {
    const Covered& q = line.pixels[i];
    for (size_t c = 0; c < line.channels; ++c) {
      float total = 0;
      for (size_t r = 0; r < line.row_count; ++r) {
        float across = 0;
        for (int64_t k = q.weight; k < q.weight + q.count; ++k) {
          const T value = image[line.rows[r] + line.places[k] + static_cast<int64_t>(c)];
          across += static_cast<float>(static_cast<Compute<T>>(value)) * line.weights[k];
        }
        total += across * line.row_weights[r];
      }
      *y++ = total * line.scale;
    }
  }
}

// Mean over the input area of each output pixel, its border pixels in part. Sums go across first,
// as TensorFlow's do, for the same bits.
template <class T>
absl::Status Area(const KernelContext& ctx, const ResizeOptions& options) {
  FLOE_RETURN_IF_ERROR(CheckImage(ctx));
  const Shape &in = ctx.in(0).shape, &out = ctx.out(0).shape;
  if (out.elements() == 0) return absl::OkStatus();
  const int64_t channels = in.dim(3), in_row = in.dim(2) * channels,
                out_row = out.dim(2) * channels;
  const float row_scale = ScaleOf(in.dim(1), out.dim(1), options.align_corners),
              col_scale = ScaleOf(in.dim(2), out.dim(2), options.align_corners);
  const float scale = 1 / (row_scale * col_scale);
  const Coverage rows = CoverageOf(in.dim(1), out.dim(1), row_scale, in_row),
                 cols = CoverageOf(in.dim(2), out.dim(2), col_scale, channels);
  const int64_t read_of_a_line = in.dim(1) / out.dim(1) * in_row + out_row;
  return WatchedRange(ctx.pool, out.dim(0) * out.dim(1),
                      std::max<int64_t>(1, kElementGrain / read_of_a_line),
                      [&](int64_t begin, int64_t end) {
                        for (int64_t line = begin; line < end; ++line) {
                          const Covered& r = rows.pixels[line % out.dim(1)];
                          const int64_t image_size = in.dim(1) * in_row;
                          const T* image = ctx.in(0).as<T>() + line / out.dim(1) * image_size;
                          float* to = ctx.out(0).as<float>() + line * out_row;
                          const AreaLine area{rows.places.data() + r.weight,
                                              rows.weights.data() + r.weight,
                                              static_cast<size_t>(r.count),
                                              cols.pixels.data(),
                                              cols.pixels.size(),
                                              cols.places.data(),
                                              cols.weights.data(),
                                              static_cast<size_t>(channels),
                                              scale};
                          if constexpr (std::is_same_v<T, float>) {
                            options.area(area, image, image_size, to);
                          } else {
                            AreaOf(area, image, to);
                          }
                        }
                      });
}

struct CropOptions {
  bool nearest;
  float outside;  // what samples beyond the image are
  InterpolateF32 interpolate;
};

// The places along one axis that a box [from, to] samples, in units of the image.
class CropAxis {
 public:
  CropAxis(float from, float to, int64_t in, int64_t out)
      : first_(out > 1 ? from * Last(in) : 0.5f * (from + to) * Last(in)),
        step_(out > 1 ? (to - from) * Last(in) / static_cast<float>(out - 1) : 0),
        in_(in) {}

  bool inside(int64_t o) const { return Place(o) >= 0 && Place(o) <= Last(in_); }
  int64_t Nearest(int64_t o) const { return Within(std::round(Place(o))); }
  Taps At(int64_t o) const {  // of a place inside
    const float low = std::floor(Place(o));
    return {{Within(low), Within(std::ceil(Place(o)))}, {0, Place(o) - low}};
  }

 private:
  static float Last(int64_t in) { return static_cast<float>(in - 1); }
  float Place(int64_t o) const { return first_ + static_cast<float>(o) * step_; }
  // Places of images of more than 2^24 lines round up beyond the last.
  int64_t Within(float place) const { return std::min(static_cast<int64_t>(place), in_ - 1); }

  float first_, step_;
  int64_t in_;
};

// A line of a crop, whose place among the rows is inside. `image` is the whole image.
template <class T>
void CropLine(const T* image, const Shape& in, const CropAxis& rows, int64_t line,
              const CropAxis& cols, const CropOptions& options, absl::Span<float> to) {
  const int64_t channels = in.dim(3), in_row = in.dim(2) * channels;
  const int64_t n = static_cast<int64_t>(to.size()) / channels;
  if (options.nearest) {
    for (int64_t o = 0; o < n; ++o) {
      if (!cols.inside(o)) continue;
      const T* from = image + rows.Nearest(line) * in_row + cols.Nearest(o) * channels;
      for (int64_t c = 0; c < channels; ++c)
        to[o * channels + c] = static_cast<float>(static_cast<Compute<T>>(from[c]));
    }
    return;
  }
  TapsOfAxis taps(n);
  for (int64_t o = 0; o < n; ++o) {
    if (cols.inside(o)) taps[o] = cols.At(o);
  }
  const Taps row = rows.At(line);
  BudgetVector<float> upper(to.size()), lower(to.size());
  AcrossRow(image + row.at[0] * in_row, taps, channels, options.interpolate, upper.data());
  AcrossRow(image + row.at[1] * in_row, taps, channels, options.interpolate, lower.data());
  options.interpolate(upper.data(), lower.data(), row.weight[1], to.data(), to.size());
}

// What a line samples beyond the image.
void FillOutside(const CropAxis& cols, int64_t channels, float value, absl::Span<float> to) {
  for (size_t o = 0; o * channels < to.size(); ++o) {
    if (!cols.inside(o)) std::fill_n(to.data() + o * channels, channels, value);
  }
}

// Boxes [y1, x1, y2, x2] in units of the image; samples beyond it take the extrapolation value.
template <class T>
absl::Status Crop(const KernelContext& ctx, const CropOptions& options) {
  const Shape &in = ctx.in(0).shape, &out = ctx.out(0).shape;
  IntList images;
  FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(2), &images));
  if (static_cast<int64_t>(images.size()) != out.dim(0))
    return absl::InvalidArgumentError(
        absl::StrCat(images.size(), " image numbers for ", out.dim(0), " boxes"));
  for (const int64_t image : images) {
    if (image < 0 || image >= in.dim(0))
      return absl::InvalidArgumentError(
          absl::StrCat("image ", image, " is not in [0, ", in.dim(0), ")"));
  }
  if (out.elements() == 0) return absl::OkStatus();
  const int64_t out_row = out.dim(2) * out.dim(3), in_image = in.elements() / in.dim(0);
  return WatchedRange(
      ctx.pool, out.dim(0) * out.dim(1), std::max<int64_t>(1, kElementGrain / out_row / 4),
      [&](int64_t begin, int64_t end) {
        for (int64_t line = begin; line < end; ++line) {
          const int64_t b = line / out.dim(1);
          const float* box = ctx.in(1).as<float>() + b * 4;
          const CropAxis rows(box[0], box[2], in.dim(1), out.dim(1)),
              cols(box[1], box[3], in.dim(2), out.dim(2));
          const absl::Span<float> to(ctx.out(0).as<float>() + line * out_row, out_row);
          if (!rows.inside(line % out.dim(1))) {
            std::fill(to.begin(), to.end(), options.outside);
            continue;
          }
          CropLine(ctx.in(0).as<T>() + images[b] * in_image, in, rows, line % out.dim(1), cols,
                   options, to);
          FillOutside(cols, in.dim(3), options.outside, to);
        }
      });
}

template <absl::Status (*kRun)(const KernelContext&, const ResizeOptions&), bool kSpaced>
class ResizeKernel final : public Kernel {
 public:
  explicit ResizeKernel(const Attrs& attrs) : options_(ResizeOptionsOf(attrs)) {}
  bool WritesSpacedLines() const override { return kSpaced; }
  absl::Status Run(const KernelContext& ctx) const override { return kRun(ctx, options_); }

 private:
  const ResizeOptions options_;
};

template <absl::Status (*kRun)(const KernelContext&, const ResizeOptions&), bool kSpaced = false>
absl::StatusOr<std::unique_ptr<Kernel>> Make(const KernelArgs& args) {
  return std::make_unique<ResizeKernel<kRun, kSpaced>>(args.node.attrs);
}
const KernelRegistrar kNearest("ResizeNearestNeighbor", DeviceKind::kCpu, {}, &Make<Nearest, true>);

template <class T>
absl::StatusOr<std::unique_ptr<Kernel>> MakeCrop(const KernelArgs& args) {
  const CropOptions options{args.node.attrs.String("method", "bilinear") == "nearest",
                            args.node.attrs.Float("extrapolation_value", 0), PickInterpolateF32()};
  return FromFunction([options](const KernelContext& ctx) { return Crop<T>(ctx, options); });
}

FLOE_REGISTER_KERNELS(ResizeBilinear, kCpu, (Make<&ResizeBilinear<T>, true>), Reals);
FLOE_REGISTER_KERNELS(ResizeBicubic, kCpu, Make<&ResizeBicubic<T>>, Reals);
FLOE_REGISTER_KERNELS(ResizeArea, kCpu, Make<&Area<T>>, Reals);
FLOE_REGISTER_KERNELS(CropAndResize, kCpu, MakeCrop<T>, Reals);

}  // namespace
}  // namespace floe::kernels
