// Where the pixels of a resized image lie in the original.
#pragma once

#include <cstdint>

namespace floe::kernels {

// Pixels of the original for each of the output, along one axis.
inline float ScaleOf(int64_t in, int64_t out, bool align) {
  return align && in > 1 && out > 1 ? static_cast<float>(in - 1) / static_cast<float>(out - 1)
                                    : static_cast<float>(in) / static_cast<float>(out);
}

// The place in the original of output pixel `o`.
inline float SourceOf(int64_t o, float scale, bool half_pixel) {
  const auto place = static_cast<float>(o);
  return half_pixel ? (place + 0.5f) * scale - 0.5f : place * scale;
}

}  // namespace floe::kernels
