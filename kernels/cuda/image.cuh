// Pools and resizes: one thread an output element, each window in the order of its places.
#pragma once

#include "kernels/cuda/functions.cuh"
#include "kernels/cuda/image_args.h"
#include "kernels/cuda/index.cuh"
#include "kernels/cuda/move.cuh"

namespace floe::cuda {

GPU_KERNEL(pool, PoolArgs, kImageThreads) {
  const int64_t i = ElementOf<kImageThreads, 1>(0);
  if (i >= args.elements) return;
  int64_t channel = 0, rest = Divide(i, args.channels, &channel);
  int begin[3], end[3];
  GPU_UNROLL
  for (int d = 2; d >= 0; --d) {
    int64_t at = 0;
    rest = Divide(rest, args.out[d], &at);
    const int first = static_cast<int>(at) * args.stride[d] - args.low[d];
    begin[d] = first < 0 ? 0 : first;
    end[d] = first + args.kernel[d] < args.in[d] ? first + args.kernel[d] : args.in[d];
  }
  const float* const x = args.x + channel;
  // The least finite number: the maximum of -inf alone is this, as on the CPU.
  float top = FloatOfBits(0xff7fffffu), sum = 0;
  int count = 0;
  for (int d = begin[0]; d < end[0]; ++d) {
    for (int r = begin[1]; r < end[1]; ++r) {
      const int64_t line = ((rest * args.in[0] + d) * args.in[1] + r) * args.in[2];
      for (int c = begin[2]; c < end[2]; ++c) {
        const float v = x[(line + c) * args.channels.divisor];
        top = v > top ? v : top;
        sum += v;
        ++count;
      }
    }
  }
  args.y[i] = args.maximum != 0 ? top : Div(sum, static_cast<float>(count));
}

// Places along one axis that an output place lies between, and how far from the first.
struct Between {
  int low, high;
  float weight;
};
GPU_DEVICE float SourcePlace(int64_t place, float scale, bool half_pixel) {
  const auto number = static_cast<float>(place);
  return half_pixel ? (number + 0.5f) * scale - 0.5f : number * scale;
}
GPU_DEVICE int Within(int place, int size) {
  return place < 0 ? 0 : place > size - 1 ? size - 1 : place;
}
GPU_DEVICE Between BetweenOf(int64_t place, float scale, bool half_pixel, int size) {
  const float source = SourcePlace(place, scale, half_pixel), floor = functions::Floor(source);
  return {Within(static_cast<int>(floor), size),
          Within(static_cast<int>(functions::Ceil(source)), size), source - floor};
}

GPU_KERNEL(resize_bilinear, ResizeArgs, kImageThreads) {
  const int64_t i = ElementOf<kImageThreads, 1>(0);
  if (i >= args.units) return;
  int64_t channel = 0, column = 0, row = 0;
  const int64_t image =
      Divide(Divide(Divide(i, args.channels, &channel), args.width, &column), args.height, &row);
  const bool half_pixel = args.half_pixel != 0;
  const Between r = BetweenOf(row, args.row_scale, half_pixel, args.in_height);
  const Between c = BetweenOf(column, args.column_scale, half_pixel, args.in_width);
  const int64_t channels = args.channels.divisor;
  const float* const x = static_cast<const float*>(args.in) +
                         image * args.in_height * args.in_width * channels + channel;
  const int64_t upper = static_cast<int64_t>(r.low) * args.in_width,
                lower = static_cast<int64_t>(r.high) * args.in_width;
  const float a = x[(upper + c.low) * channels], b = x[(upper + c.high) * channels];
  const float p = x[(lower + c.low) * channels], q = x[(lower + c.high) * channels];
  const float above = a + (b - a) * c.weight, below = p + (q - p) * c.weight;
  static_cast<float*>(args.out)[i] = above + (below - above) * r.weight;
}

GPU_DEVICE int NearestPlace(int64_t place, float scale, const ResizeArgs& args, int size) {
  const auto number = static_cast<float>(place);
  const float source = args.half_pixel != 0 ? (number + 0.5f) * scale : number * scale;
  // Half away from zero: `source` is not negative.
  const float floor = functions::Floor(source);
  const bool up = args.align_corners != 0 && source - floor >= 0.5f;
  return Within(static_cast<int>(floor) + (up ? 1 : 0), size);
}

GPU_KERNEL(resize_nearest, ResizeArgs, kImageThreads) {
  const int64_t i = ElementOf<kImageThreads, 1>(0);
  if (i >= args.units) return;
  int64_t channel = 0, column = 0, row = 0;
  const int64_t image =
      Divide(Divide(Divide(i, args.channels, &channel), args.width, &column), args.height, &row);
  const int64_t from_row = NearestPlace(row, args.row_scale, args, args.in_height);
  const int64_t from_column = NearestPlace(column, args.column_scale, args, args.in_width);
  const int64_t pixel = (image * args.in_height + from_row) * args.in_width + from_column;
  MoveUnit(args.unit_bytes, args.out, i, args.in, pixel * args.channels.divisor + channel);
}

}  // namespace floe::cuda
