// Convolutions of 3x3 taps by Winograd's minimal filtering: a tile of pixels and the filter become
// as many numbers as the tile has points, whose products (by the kernels of gemm.cuh) make a tile
// of the result.
//
// The error of a result is relative to the largest values of its tile. A tile that holds an
// infinity or NaN, or whose values differ too much from window to window, is computed by plain
// sums. Tiles share nothing, so the bits of an image depend on that image alone.
#pragma once

#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/index.cuh"
#include "kernels/cuda/winograd_args.h"

namespace floe::cuda {

// The transforms of a line of points.
template <int kTile>
struct WinogradLine;

// Points 0, 1, -1, infinity.
template <>
struct WinogradLine<2> {
  GPU_DEVICE static void Input(const float (&x)[4], float (&to)[4]) {
    to[0] = x[0] - x[2];
    to[1] = x[2] + x[1];
    to[2] = x[2] - x[1];
    to[3] = x[3] - x[1];
  }
  GPU_DEVICE static void Output(const float (&m)[4], float (&y)[2]) {
    y[0] = m[0] + (m[1] + m[2]);
    y[1] = m[3] + (m[1] - m[2]);
  }
};

// Points 0, a, -a, b, -b, infinity, whose products are exact in float32.
template <>
struct WinogradLine<4> {
  static constexpr float a = 0.625f, b = 1.5f;
  static constexpr float aa = a * a, bb = b * b;

  GPU_DEVICE static void Input(const float (&x)[6], float (&to)[6]) {
    const float even_a = Fma(-bb, x[2], x[4]), odd_a = Fma(-bb, x[1], x[3]);
    const float even_b = Fma(-aa, x[2], x[4]), odd_b = Fma(-aa, x[1], x[3]);
    to[0] = Fma(aa * bb, x[0], Fma(-(aa + bb), x[2], x[4]));
    to[1] = Fma(a, odd_a, even_a);
    to[2] = Fma(-a, odd_a, even_a);
    to[3] = Fma(b, odd_b, even_b);
    to[4] = Fma(-b, odd_b, even_b);
    to[5] = Fma(aa * bb, x[1], Fma(-(aa + bb), x[3], x[5]));
  }
  GPU_DEVICE static void Output(const float (&m)[6], float (&y)[4]) {
    const float even_a = m[1] + m[2], odd_a = m[1] - m[2];
    const float even_b = m[3] + m[4], odd_b = m[3] - m[4];
    y[0] = m[0] + (even_a + even_b);
    y[1] = Fma(b, odd_b, a * odd_a);
    y[2] = Fma(bb, even_b, aa * even_a);
    y[3] = Fma(bb * b, odd_b, aa * a * odd_a) + m[5];
  }
};

// One tile.
struct WinogradPlace {
  int64_t image;
  int y, x;  // of its first result
  GPU_DEVICE WinogradPlace(const WinogradArgs& args, int64_t tile, int side) {
    const int64_t of_image = int64_t{args.tiles[0]} * args.tiles[1];
    image = tile / of_image;
    const int inside = static_cast<int>(tile % of_image);
    y = inside / args.tiles[1] * side;
    x = inside % args.tiles[1] * side;
  }
};

GPU_DEVICE bool IsInside(const WinogradArgs& args, int y, int x) {
  return static_cast<uint32_t>(y) < static_cast<uint32_t>(args.in[0]) &&
         static_cast<uint32_t>(x) < static_cast<uint32_t>(args.in[1]);
}

// A warp for each pixel. NaN and infinities are above all others.
GPU_KERNEL(winograd_largest, WinogradArgs, 256) {
  const int64_t pixel = RowOfWarp<256>();
  if (pixel >= args.all_pixels) return;
  const int64_t of_image = int64_t{args.in[0]} * args.in[1];
  const float* const x = args.x + pixel / of_image * args.x_image + pixel % of_image * args.x_pixel;
  uint32_t most = 0;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int c = lane; c < args.channels; c += 32) {
    const uint32_t bits = BitsOfFloat(x[c]) & 0x7fffffffu;
    most = bits > most ? bits : most;
  }
  GPU_UNROLL
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    const uint32_t other = __shfl_xor_sync(0xffffffffu, most, lanes);
    most = other > most ? other : most;
  }
  if (lane == 0) args.largest[pixel] = most;
}

// The largest value of the pixels of a square.
GPU_DEVICE uint32_t LargestOf(const WinogradArgs& args, int64_t image, int y0, int x0, int side) {
  const uint32_t* const largest = args.largest + image * args.in[0] * args.in[1];
  uint32_t most = 0;
  for (int y = y0; y < y0 + side; ++y) {
    for (int x = x0; x < x0 + side; ++x) {
      if (!IsInside(args, y, x)) continue;
      const uint32_t bits = largest[static_cast<int64_t>(y) * args.in[1] + x];
      most = bits > most ? bits : most;
    }
  }
  return most;
}

// A thread for each tile.
template <int kTile>
GPU_DEVICE void Judge(const WinogradArgs& args) {
  const int64_t tile = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (tile >= args.all_tiles) return;
  const WinogradPlace place(args, tile, kTile);
  const int y0 = place.y - args.low[0], x0 = place.x - args.low[1];
  const uint32_t most = LargestOf(args, place.image, y0, x0, kTile + 2);
  uint32_t kind = 0;
  if (most != 0 && (most > args.most_bits || most < args.fewest_bits)) kind = kDirectTile;
  const uint32_t least = BitsOfFloat(Div(FloatOfBits(most), args.range));
  for (int i = 0; i < kTile * kTile && kind != kDirectTile; ++i) {
    const int y = i / kTile, x = i % kTile;
    if (place.y + y >= args.out[0] || place.x + x >= args.out[1]) continue;
    const uint32_t window = LargestOf(args, place.image, y0 + y, x0 + x, 3);
    if (window == 0) {
      kind |= 1u << i;
    } else if (window < least) {
      kind = kDirectTile;
    }
  }
  args.kinds[tile] = kind;
}
GPU_KERNEL(winograd_judge_2, WinogradArgs, 256) { Judge<2>(args); }
GPU_KERNEL(winograd_judge_4, WinogradArgs, 256) { Judge<4>(args); }

// A thread for each channel of each tile.
template <int kTile>
GPU_DEVICE void TransformInput(const WinogradArgs& args) {
  constexpr int kSide = kTile + 2;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (i >= args.all_tiles * args.channels) return;
  const int channel = static_cast<int>(i % args.channels);
  const WinogradPlace place(args, i / args.channels, kTile);
  const float* const image = args.x + place.image * args.x_image + channel;
  const int y0 = place.y - args.low[0], x0 = place.x - args.low[1];
  float across[kSide][kSide];
  GPU_UNROLL
  for (int y = 0; y < kSide; ++y) {
    float line[kSide];
    GPU_UNROLL
    for (int x = 0; x < kSide; ++x) {
      const bool inside = IsInside(args, y0 + y, x0 + x);
      const int64_t pixel = static_cast<int64_t>(y0 + y) * args.in[1] + x0 + x;
      line[x] = inside ? image[pixel * args.x_pixel] : 0.0f;
    }
    WinogradLine<kTile>::Input(line, across[y]);
  }
  const int64_t plane = args.all_tiles * args.channels;
  GPU_UNROLL
  for (int x = 0; x < kSide; ++x) {
    float line[kSide], to[kSide];
    GPU_UNROLL
    for (int y = 0; y < kSide; ++y) line[y] = across[y][x];
    WinogradLine<kTile>::Input(line, to);
    GPU_UNROLL
    for (int y = 0; y < kSide; ++y) args.points[(y * kSide + x) * plane + i] = to[y];
  }
}
GPU_KERNEL(winograd_input_2, WinogradArgs, 256) { TransformInput<2>(args); }
GPU_KERNEL(winograd_input_4, WinogradArgs, 256) { TransformInput<4>(args); }

// In the order in which the kernels of conv.cuh sum.
GPU_DEVICE float PlainSum(const WinogradArgs& args, int64_t image, int y0, int x0, int column) {
  float sum = 0;
  GPU_NO_UNROLL
  for (int tap = 0; tap < 9; ++tap) {
    const int y = y0 + tap / 3, x = x0 + tap % 3;
    if (!IsInside(args, y, x)) continue;
    const float* const pixel =
        args.x + image * args.x_image + (static_cast<int64_t>(y) * args.in[1] + x) * args.x_pixel;
    const float* const weights =
        args.filter + static_cast<int64_t>(tap) * args.channels * args.outputs + column;
    GPU_NO_UNROLL
    for (int c = 0; c < args.channels; ++c)
      sum = Fma(pixel[c], weights[static_cast<int64_t>(c) * args.outputs], sum);
  }
  return sum;
}

template <int kTile>
GPU_DEVICE void ReadProducts(const WinogradArgs& args, int64_t at, float (&result)[kTile][kTile]) {
  constexpr int kSide = kTile + 2;
  const int64_t plane = args.all_tiles * args.columns;
  float across[kSide][kTile];
  GPU_UNROLL
  for (int y = 0; y < kSide; ++y) {
    float line[kSide];
    GPU_UNROLL
    for (int x = 0; x < kSide; ++x) line[x] = args.products[(y * kSide + x) * plane + at];
    WinogradLine<kTile>::Output(line, across[y]);
  }
  GPU_UNROLL
  for (int x = 0; x < kTile; ++x) {
    float line[kSide], to[kTile];
    GPU_UNROLL
    for (int y = 0; y < kSide; ++y) line[y] = across[y][x];
    WinogradLine<kTile>::Output(line, to);
    GPU_UNROLL
    for (int y = 0; y < kTile; ++y) result[y][x] = to[y];
  }
}

// A thread for each output channel of each tile.
template <int kTile>
GPU_DEVICE void TransformOutput(const WinogradArgs& args) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (i >= args.all_tiles * args.outputs) return;
  const int column = static_cast<int>(i % args.outputs);
  const int64_t tile = i / args.outputs;
  const WinogradPlace place(args, tile, kTile);
  const uint32_t kind = args.kinds[tile];
  const int64_t to = place.image * args.y_image + place.y * args.y_row + place.x * args.y_pixel;
  const int rows = args.out[0] - place.y, columns = args.out[1] - place.x;
  float result[kTile][kTile];
  if (kind == kDirectTile) {
    GPU_UNROLL
    for (int e = 0; e < kTile * kTile; ++e) {
      const int y = e / kTile, x = e % kTile;
      result[y][x] = y >= rows || x >= columns
                         ? 0.0f
                         : PlainSum(args, place.image, place.y + y - args.low[0],
                                    place.x + x - args.low[1], column);
    }
  } else {
    ReadProducts(args, tile * args.columns + column, result);
  }
  GPU_UNROLL
  for (int e = 0; e < kTile * kTile; ++e) {
    const int y = e / kTile, x = e % kTile;
    if (y >= rows || x >= columns) continue;
    const float sum = kind != kDirectTile && (kind >> e & 1) != 0 ? 0.0f : result[y][x];
    const int64_t at = to + y * args.y_row + x * args.y_pixel + column;
    args.y[at] = FinishCheaply(sum + 0.0f, args.epilogue, at, column);
  }
  if (IsCheap(args.epilogue.activation)) return;
  GPU_NO_UNROLL
  for (int e = 0; e < kTile * kTile; ++e) {
    const int y = e / kTile, x = e % kTile;
    if (y >= rows || x >= columns) continue;
    float* const at = args.y + to + y * args.y_row + x * args.y_pixel + column;
    *at = Activate(*at, args.epilogue.activation, args.epilogue.alpha);
  }
}
GPU_KERNEL(winograd_output_2, WinogradArgs, 256) { TransformOutput<2>(args); }
GPU_KERNEL(winograd_output_4, WinogradArgs, 256) { TransformOutput<4>(args); }

}  // namespace floe::cuda
