// Means over areas of pixels, for ResizeArea of float32, one implementation for every ISA.
#pragma once

#include <cstddef>
#include <cstdint>

namespace floe::kernels {

// What an output place covers of one axis: `count` places, of which weights[weight] is how much of
// the first counts, weights[weight + 1] how much of the next, and so on.
struct Covered {
  int64_t count, weight;
};

// A line of output pixels. Pointers are the caller's.
struct AreaLine {
  const int64_t* rows;       // where each covered line of the image begins
  const float* row_weights;  // one for each row
  size_t row_count;
  const Covered* pixels;  // one for each output pixel
  size_t pixel_count;
  const int64_t* places;  // for each of `weights`, where its pixel begins in a row
  const float* weights;
  size_t channels;
  float scale;  // of each sum
};

// y [pixel_count, channels] = scale * sum over rows of row_weight * (sum over columns of weight *
// pixel): across first, in this order, without fused multiply-adds, so that every ISA gives the
// same bits. Reads within image [size].
using AreaF32 = void (*)(const AreaLine& line, const float* image, int64_t size, float* y);
AreaF32 PickAreaF32();  // for this CPU; call once, when the kernel is made

}  // namespace floe::kernels
