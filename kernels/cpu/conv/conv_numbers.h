// Numbers that the transformed convolutions count with.
#pragma once

#include <cstdint>
#include <cstring>

namespace floe::kernels {

// a / b rounded up, for a >= 0.
inline int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The bits of a float, and back: those of positive floats are ordered as the floats are.
inline uint32_t BitsOf(double value) {
  const auto number = static_cast<float>(value);
  uint32_t bits = 0;
  std::memcpy(&bits, &number, sizeof bits);
  return bits;
}
inline float NumberOf(uint32_t bits) {
  float number = 0;
  std::memcpy(&number, &bits, sizeof number);
  return number;
}

}  // namespace floe::kernels
