// Kernels over images with channels last: pools and resizes.
#pragma once

#include <cstdint>

#include "kernels/cuda/divider.h"

namespace floe::cuda {

inline constexpr int kImageThreads = 256;

// Volumes; images have a depth of 1. The average is over what lies inside.
struct PoolArgs {
  const float* x;
  float* y;
  int64_t elements;  // of y
  Divider channels, out[3];
  int32_t in[3], kernel[3], stride[3], low[3];
  int32_t maximum;
};

struct ResizeArgs {
  const void* in;
  void* out;
  int64_t units;  // of the output; bilinear: float32
  int32_t unit_bytes, align_corners, half_pixel;
  int32_t in_height, in_width;
  Divider channels, width, height;  // of the output, channels in units
  float row_scale, column_scale;
};

}  // namespace floe::cuda
