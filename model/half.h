// 16-bit floating point: IEEE float16 and bfloat16, stored as bits and computed in float.
#pragma once

#include <cstdint>
#include <cstring>

namespace floe {

// Nearest float16, ties to even; beyond 65504 infinity; NaN stays NaN.
inline uint16_t FloatToHalfBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  bits &= 0x7fffffff;
  if (bits > 0x7f800000) return sign | 0x7e00;
  if (bits >= 0x477ff000) return sign | 0x7c00;  // rounds to 65520 or more
  if (bits < 0x38800000) {                       // below 2^-14: a multiple of 2^-24
    float magnitude;
    std::memcpy(&magnitude, &bits, sizeof(magnitude));
    // Adding 0.5 leaves the wanted bits at the end of the mantissa, rounded by the addition.
    const float shifted = magnitude + 0.5f;
    uint32_t shifted_bits;
    std::memcpy(&shifted_bits, &shifted, sizeof(shifted_bits));
    return static_cast<uint16_t>(sign | (shifted_bits - 0x3f000000));
  }
  const uint32_t odd = (bits >> 13) & 1;
  return static_cast<uint16_t>(sign | ((bits + 0xfff + odd - 0x38000000) >> 13));
}

inline float HalfBitsToFloat(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t rest = half & 0x7fff;
  uint32_t bits;
  float value;
  if (rest >= 0x7c00) {
    bits = sign | 0x7f800000 | ((rest & 0x3ff) << 13);
  } else if (rest >= 0x400) {
    bits = sign | ((rest << 13) + 0x38000000);
  } else {
    value = static_cast<float>(rest) * 0x1p-24f;
    return sign == 0 ? value : -value;
  }
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// Nearest bfloat16, ties to even; NaN stays NaN.
inline uint16_t FloatToBFloat16Bits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

inline float BFloat16BitsToFloat(uint16_t bfloat) {
  const uint32_t bits = static_cast<uint32_t>(bfloat) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

struct Half {
  uint16_t bits = 0;
  Half() = default;
  Half(float value) : bits(FloatToHalfBits(value)) {}  // NOLINT: a number type
  operator float() const { return HalfBitsToFloat(bits); }
};

struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  BFloat16(float value) : bits(FloatToBFloat16Bits(value)) {}  // NOLINT: a number type
  operator float() const { return BFloat16BitsToFloat(bits); }
};

}  // namespace floe
