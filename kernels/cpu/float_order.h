// Floats as integers that compare like them, for sorts and queues: one comparison without branches.
#pragma once

#include <bit>
#include <cstdint>

namespace floe::kernels {

// Of a greater float the greater number; -0 counts as 0. Not for NaN.
inline uint32_t OrderOf(float x) {
  const auto bits = std::bit_cast<uint32_t>(x + 0.0f);
  return bits ^ ((bits >> 31) != 0 ? ~uint32_t{0} : uint32_t{1} << 31);
}
inline float FloatOfOrder(uint32_t order) {
  return std::bit_cast<float>(order ^ ((order >> 31) != 0 ? uint32_t{1} << 31 : ~uint32_t{0}));
}

}  // namespace floe::kernels
