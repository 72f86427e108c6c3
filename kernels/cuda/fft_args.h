// Of convolutions along one dim by overlap-save Fourier transforms.
#pragma once

#include <cstdint>

#include "kernels/cuda/gemm_args.h"

namespace floe::cuda {

inline constexpr int kFftThreads = 256, kFftChannels = 32;  // of a block
inline constexpr int kMostFftFirst = 16, kMostFftSecond = 16;
inline constexpr int kMostFftPoints = kMostFftFirst * kMostFftSecond;

// The spectrum of real data: one plane for frequency 0 and one for points / 2, which are real, and
// three for each of the others: re, im and re + im of data. Their products with the three planes of
// the weights c + id, which are d - c, c + d and c, are k1, k2 and k3, and the product of the two
// complex numbers is (k3 - k2) + i (k3 + k1).
constexpr int64_t FftPlanesOf(int64_t points) { return 3 * (points / 2 - 1) + 2; }

enum class FftTileKind : uint32_t {
  kTransformed,
  kDirect,  // it holds an infinity or NaN, or its range is too wide: its sums are computed as such
};

// What is the same for all launches of a layer. A tile is `points` rows of one sequence of an
// image, and gives `tile` = points - taps + 1 rows of the result. Row n has `width` floats; s
// neighbouring input rows are one row where the stride is s, and d interleaved sequences are
// independent where the dilation is d. Tiles are counted over all images; a launch computes some
// from `first_tile` on.
struct FftArgs {
  const float* x;
  int64_t image;         // floats
  const float* cosines;  // cos and sin of 2 pi i / points, in pairs
  uint32_t* kinds;       // FftTileKind, by tile of the launch
  uint32_t* most;        // by tile of the launch and row: bits of the largest value of a window
  float* data;           // spectra: [planes, together, width, up to a multiple of four]
  float* products;       // the same of the columns
  const float* direct;   // the filter as it is: [direct_k, columns], line `direct_line`
  float* y;
  int64_t first_tile;
  int64_t pad, stride;  // of a row of the input, in such rows
  int32_t channels;     // floats of a row of the input
  int32_t out;          // rows of the result
  int32_t dilation;
  int32_t sequences, tiles_of_sequence;  // of an image
  int32_t together;                      // tiles that the spectra have room for
  int32_t points, first, second;         // points = first * second, first even
  int32_t taps, tile, width, columns;
  int32_t data_line, product_line, direct_line;
  int32_t direct_k;
  uint32_t high, low;  // bits of the largest and least size of a tile's largest value
  float range;         // the most by which a window's may be below
  EpilogueArgs epilogue;
};

}  // namespace floe::cuda
