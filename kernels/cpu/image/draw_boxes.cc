// DrawBoundingBoxes: the outlines of boxes painted onto images.
#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/move/grid_copy.h"
#include "kernels/cpu/run_watch.h"

namespace floe::kernels {
namespace {

struct Colour {
  float part[4];
};

// Yellow, blue, red, lime, purple, olive, maroon, navy blue, aqua, fuchsia.
constexpr Colour kUsual[] = {{1, 1, 0, 1},     {0, 0, 1, 1},     {1, 0, 0, 1},   {0, 1, 0, 1},
                             {0.5, 0, 0.5, 1}, {0.5, 0.5, 0, 1}, {0.5, 0, 0, 1}, {0, 0, 0.5, 1},
                             {0, 1, 1, 1},     {1, 0, 1, 1}};

std::vector<Colour> ColoursOf(const KernelContext& ctx, int64_t depth) {
  std::vector<Colour> colours(std::begin(kUsual), std::end(kUsual));
  if (depth == 1) {
    for (Colour& colour : colours) colour.part[0] = 1;
  }
  if (ctx.inputs.size() < 3 || ctx.in(2).elements() == 0) return colours;
  colours.clear();
  const auto* from = ctx.in(2).as<float>();
  for (int64_t i = 0; i < ctx.in(2).shape.dim(0); ++i, from += 4)
    colours.push_back({{from[0], from[1], from[2], from[3]}});
  return colours;
}

// A part of a side of `size` pixels; far outside for what is no number.
int64_t PlaceOf(float part, int64_t size) {
  constexpr float kFar = 1e15;
  const float place = part * static_cast<float>(size - 1);
  return std::isnan(place) ? static_cast<int64_t>(-kFar)
                           : static_cast<int64_t>(std::clamp(place, -kFar, kFar));
}

template <class T>
struct Canvas {
  T* pixels;
  int64_t height, width, depth;

  void Paint(int64_t y, int64_t x, const Colour& colour) const {
    T* const to = pixels + (y * width + x) * depth;
    for (int64_t c = 0; c < depth; ++c) to[c] = static_cast<T>(colour.part[c]);
  }
  void Outline(const float* box, const Colour& colour) const {
    const int64_t top = PlaceOf(box[0], height), left = PlaceOf(box[1], width),
                  bottom = PlaceOf(box[2], height), right = PlaceOf(box[3], width);
    if (top > bottom || left > right || top >= height || bottom < 0 || left >= width || right < 0)
      return;
    const int64_t y0 = std::max<int64_t>(top, 0), y1 = std::min(bottom, height - 1),
                  x0 = std::max<int64_t>(left, 0), x1 = std::min(right, width - 1);
    for (int64_t x = x0; x <= x1; ++x) {
      if (top >= 0) Paint(top, x, colour);
      if (bottom < height) Paint(bottom, x, colour);
    }
    for (int64_t y = y0; y <= y1; ++y) {
      if (left >= 0) Paint(y, left, colour);
      if (right < width) Paint(y, right, colour);
    }
  }
};

template <class T>
absl::Status Draw(const KernelContext& ctx) {
  const Shape& shape = ctx.out(0).shape;
  const int64_t depth = shape.dim(3), boxes = ctx.in(1).shape.dim(1);
  if (depth != 1 && depth != 3 && depth != 4)
    return absl::InvalidArgumentError(
        absl::StrCat("images have ", depth, " channels, expected 1, 3 or 4"));
  const std::vector<Colour> colours = ColoursOf(ctx, depth);
  if (ctx.out(0).elements() == 0) return absl::OkStatus();
  std::copy_n(ctx.in(0).as<T>(), ctx.in(0).elements(), ctx.out(0).as<T>());
  const int64_t image = shape.dim(1) * shape.dim(2) * depth;
  RunWatch watch;
  ParallelRange(ctx.pool, shape.dim(0), 1, [&](int64_t begin, int64_t end) {
    constexpr int64_t kLookEvery = 64;
    for (int64_t b = begin; b < end; ++b) {
      const Canvas<T> canvas{ctx.out(0).as<T>() + b * image, shape.dim(1), shape.dim(2), depth};
      for (int64_t i = 0; i < boxes; ++i) {
        if (i % kLookEvery == 0 && watch.Stopped()) return;
        canvas.Outline(ctx.in(1).as<float>() + (b * boxes + i) * 4,
                       colours[static_cast<size_t>(i) % colours.size()]);
      }
    }
  });
  return watch.status();
}
FLOE_REGISTER_KERNELS(DrawBoundingBoxes, kCpu, MakeFunction<Draw<T>>, TypeList<float, Half>);

}  // namespace
}  // namespace floe::kernels
