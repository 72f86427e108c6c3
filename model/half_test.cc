#include "model/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace floe {
namespace {

// The value of a float16 by its definition.
double HalfValue(uint16_t bits) {
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  const int exponent = (bits >> 10) & 31, mantissa = bits & 1023;
  if (exponent == 31)
    return mantissa != 0 ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

TEST(Half, EveryValueThereAndBack) {
  for (uint32_t i = 0; i < 65536; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    const float value = HalfBitsToFloat(bits);
    if (std::isnan(HalfValue(bits))) {
      ASSERT_TRUE(std::isnan(value)) << i;
      ASSERT_TRUE(std::isnan(HalfBitsToFloat(FloatToHalfBits(value)))) << i;
      continue;
    }
    ASSERT_EQ(value, HalfValue(bits)) << i;
    ASSERT_EQ(FloatToHalfBits(value), bits) << i;
  }
}

TEST(Half, RoundsToNearestTiesToEven) {
  for (uint16_t bits = 0; bits < 0x7bff; ++bits) {
    const double low = HalfValue(bits), high = HalfValue(static_cast<uint16_t>(bits + 1)),
                 middle = (low + high) / 2;
    const auto even = static_cast<uint16_t>(bits + (bits & 1));
    ASSERT_EQ(FloatToHalfBits(static_cast<float>(middle)), even) << bits;
    ASSERT_EQ(FloatToHalfBits(std::nextafter(static_cast<float>(middle), 0.0f)), bits);
    ASSERT_EQ(FloatToHalfBits(std::nextafter(static_cast<float>(middle), 1e9f)), bits + 1);
    ASSERT_EQ(FloatToHalfBits(-static_cast<float>(middle)), even | 0x8000);
  }
  EXPECT_EQ(FloatToHalfBits(65519.0f), 0x7bff);
  EXPECT_EQ(FloatToHalfBits(65520.0f), 0x7c00);
  EXPECT_EQ(FloatToHalfBits(1e30f), 0x7c00);
  EXPECT_EQ(FloatToHalfBits(-std::numeric_limits<float>::infinity()), 0xfc00);
}

TEST(BFloat16, RoundsToNearestTiesToEven) {
  EXPECT_EQ(FloatToBFloat16Bits(1.0f), 0x3f80);
  EXPECT_EQ(FloatToBFloat16Bits(1.0f + 0x1p-8f), 0x3f80);             // a tie, to even
  EXPECT_EQ(FloatToBFloat16Bits(1.0f + 3 * 0x1p-8f), 0x3f82);         // a tie, to even
  EXPECT_EQ(FloatToBFloat16Bits(1.0f + 0x1p-8f + 0x1p-20f), 0x3f81);  // above the tie
  EXPECT_EQ(FloatToBFloat16Bits(-2.5f), 0xc020);
  EXPECT_TRUE(std::isnan(BFloat16BitsToFloat(FloatToBFloat16Bits(std::nanf("")))));
  EXPECT_EQ(BFloat16BitsToFloat(0x4049), 3.140625f);
}

}  // namespace
}  // namespace floe
