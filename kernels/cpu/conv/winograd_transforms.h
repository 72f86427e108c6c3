// Transforms of Winograd's minimal filtering: a tile of pixels and a filter become as many numbers
// as the tile has pixels, whose products are those of a tile of the result. Vectors run over
// channels.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "model/epilogue.h"

namespace floe::kernels {

// One dim of a form: `tile` results from `points` pixels under `taps` taps.
struct WinogradLine {
  int tile = 1, taps = 1;
  int points() const { return tile + taps - 1; }
};

inline constexpr int kMostWinogradPoints = 64;  // of both dims

// Where a tile of the result goes; rows and columns beyond those that there are are not written.
struct WinogradResult {
  float* base = nullptr;
  const float* residual = nullptr;  // added before the activation, laid out alike; or null
  int64_t row_stride = 0, column_stride = 0;  // floats
  int64_t rows = 0, columns = 0;              // at most the form's tile
  int64_t channels = 0;
  const float* bias = nullptr;  // readable by whole vectors; or null
  Activation activation = Activation::kNone;
  float alpha = 0;
};

// The functions of one form and instruction set. Pixel (i, j) of a tile is at pixels[i * w.points()
// + j], product (i, j) at i * w.points() + j planes. Never allocate, never fail, any thread.
struct WinogradForm {
  WinogradLine h, w;
  int points() const { return h.points() * w.points(); }

  // Planes of whole vectors, aligned; floats behind the last channel may be written.
  void (*input)(const float* const* pixels, int64_t channels, float* to, int64_t plane);
  // The tile of the result from the sums of products, read by whole vectors.
  void (*output)(const float* from, int64_t plane, const WinogradResult& result);
  // `filter` is [taps, taps, channels, columns]; the planes are matrices as PackGemm makes them of
  // [channels, columns].
  void (*weights)(const float* filter, int64_t channels, int64_t columns, float* to, int64_t plane);
  // The tile of the result by plain sums over the filter as it is.
  void (*direct)(const float* const* pixels, const float* filter, int64_t channels,
                 const WinogradResult& result);
};

// Of the instruction set in use, cheapest per result first; call when a kernel is made.
absl::Span<const WinogradForm> WinogradForms();

// most[i] becomes the largest absolute value of pixel i of `channels` floats, as the bits of a
// float; NaN and infinities are above all others. Pixels begin `stride` floats apart.
using LargestOfPixels = void (*)(const float* pixels, int64_t count, int64_t channels,
                                 int64_t stride, uint32_t* most);
LargestOfPixels PickLargestOfPixels();

}  // namespace floe::kernels
