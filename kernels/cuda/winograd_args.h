// Of convolutions of 3x3 taps and stride 1 by Winograd's minimal filtering.
#pragma once

#include <cstdint>

#include "kernels/cuda/gemm_args.h"

namespace floe::cuda {

// How a tile of the result is computed: bit i is set where the window of its pixel i (by rows of
// kTile) holds nothing but zeros, so that the sum is 0; or by plain sums.
inline constexpr uint32_t kDirectTile = 1u << 31;

// A tile of kTile x kTile results is made of (kTile + 2)^2 pixels, its points. Images and tiles
// count slowest.
struct WinogradArgs {
  const float* x;
  int64_t x_image, x_pixel;  // elements from one to the next
  const float* filter;       // [taps, channels, outputs], for plain sums
  uint32_t* largest;         // [images, pixels of x]: bits of the largest |value|
  uint32_t* kinds;           // [tiles]
  float* points;             // [points, tiles, channels]
  const float* products;     // [points, tiles, columns]
  float* y;
  int64_t y_image, y_row, y_pixel;
  int64_t all_tiles, all_pixels;
  int32_t in[2], out[2], low[2], tiles[2];  // tiles of an image
  int32_t channels, outputs, columns;
  float range;                      // of a tile's largest value over a window's: beyond it, plain
  uint32_t most_bits, fewest_bits;  // a tile's largest value outside: plain
  EpilogueArgs epilogue;
};

}  // namespace floe::cuda
