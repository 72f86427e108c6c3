#include "model/number.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>

namespace floe {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();

template <typename T>
T Integer(DType dtype, int64_t value) {
  const auto scalar = IntegerScalar(dtype, value);
  EXPECT_TRUE(scalar.has_value()) << DTypeName(dtype) << " " << value;
  if (!scalar) return T();
  EXPECT_EQ(scalar->dtype(), dtype);
  EXPECT_EQ(scalar->shape(), Shape());
  return *scalar->as<T>();
}

template <typename T>
T Real(DType dtype, double value) {
  const auto scalar = RealScalar(dtype, value);
  EXPECT_TRUE(scalar.has_value()) << DTypeName(dtype) << " " << value;
  if (!scalar) return T();
  EXPECT_EQ(scalar->dtype(), dtype);
  EXPECT_EQ(scalar->shape(), Shape());
  return *scalar->as<T>();
}

TEST(Number, IntegersAreExact) {
  EXPECT_EQ(Integer<int64_t>(DType::kInt64, kMost), kMost);
  EXPECT_EQ(Integer<int64_t>(DType::kInt64, kLeast), kLeast);
  EXPECT_EQ(Integer<int64_t>(DType::kInt64, (int64_t{1} << 53) + 1), (int64_t{1} << 53) + 1)
      << "no double in between";
  EXPECT_EQ(Integer<uint64_t>(DType::kUInt64, kMost), static_cast<uint64_t>(kMost));
  EXPECT_EQ(Integer<uint32_t>(DType::kUInt32, 4294967295), 4294967295u);
  EXPECT_EQ(Integer<int32_t>(DType::kInt32, -2147483648), std::numeric_limits<int32_t>::min());
  EXPECT_EQ(Integer<uint16_t>(DType::kUInt16, 65535), 65535);
  EXPECT_EQ(Integer<int16_t>(DType::kInt16, -32768), -32768);
  EXPECT_EQ(Integer<uint8_t>(DType::kUInt8, 255), 255);
  EXPECT_EQ(Integer<int8_t>(DType::kInt8, -128), -128);
  EXPECT_TRUE(Integer<bool>(DType::kBool, 1));
  EXPECT_FALSE(Integer<bool>(DType::kBool, 0));
  for (const auto& [dtype, value] : {std::pair(DType::kUInt64, int64_t{-1}),
                                     {DType::kUInt32, 4294967296},
                                     {DType::kInt32, 2147483648},
                                     {DType::kUInt16, 65536},
                                     {DType::kInt16, 32768},
                                     {DType::kUInt8, 256},
                                     {DType::kInt8, -129},
                                     {DType::kBool, 2}})
    EXPECT_FALSE(IntegerScalar(dtype, value)) << DTypeName(dtype) << " " << value;
}

TEST(Number, RealNumbersAsIntegersOnlyWhenTheyAreSome) {
  EXPECT_EQ(Real<int32_t>(DType::kInt32, -3.0), -3);
  EXPECT_EQ(Real<int8_t>(DType::kInt8, -128), -128);
  EXPECT_EQ(Real<int64_t>(DType::kInt64, -9223372036854775808.0), kLeast);
  EXPECT_EQ(Real<uint64_t>(DType::kUInt64, 18446744073709549568.0), 18446744073709549568u);
  EXPECT_TRUE(Real<bool>(DType::kBool, 1));
  for (const auto& [dtype, value] : {std::pair(DType::kInt8, 128.0),
                                     {DType::kUInt8, -1.0},
                                     {DType::kInt32, 0.5},
                                     {DType::kInt64, 9223372036854775808.0},
                                     {DType::kUInt64, 18446744073709551616.0},
                                     {DType::kInt32, std::nan("")},
                                     {DType::kInt64, -HUGE_VAL},
                                     {DType::kBool, 0.5}})
    EXPECT_FALSE(RealScalar(dtype, value)) << DTypeName(dtype) << " " << value;
}

// Bits by the formats' definitions: 1.5 is 1 + half the significand.
TEST(Number, FloatingAndComplex) {
  EXPECT_EQ(Real<float>(DType::kFloat32, 0.1), 0.1f);
  EXPECT_EQ(Real<double>(DType::kFloat64, 0.1), 0.1);
  EXPECT_EQ(Real<uint16_t>(DType::kFloat16, 1.5), 0x3e00);
  EXPECT_EQ(Real<uint16_t>(DType::kBFloat16, 1.5), 0x3fc0);
  EXPECT_EQ(Real<std::complex<float>>(DType::kComplex64, 0.5), std::complex<float>(0.5f, 0));
  EXPECT_EQ(Real<std::complex<double>>(DType::kComplex128, 0.1), std::complex<double>(0.1, 0));
  EXPECT_EQ(Integer<uint16_t>(DType::kFloat16, -2), 0xc000);
  EXPECT_EQ(Integer<uint16_t>(DType::kBFloat16, -2), 0xc000);
  EXPECT_EQ(Integer<double>(DType::kFloat64, 3), 3.0);
  EXPECT_EQ(Integer<std::complex<float>>(DType::kComplex64, 3), std::complex<float>(3, 0));
}

TEST(Number, NoneOfOtherDTypes) {
  for (const DType dtype : {DType::kString, DType::kResource, DType::kVariant, DType::kInvalid}) {
    EXPECT_FALSE(IntegerScalar(dtype, 0)) << DTypeName(dtype);
    EXPECT_FALSE(RealScalar(dtype, 0)) << DTypeName(dtype);
  }
}

}  // namespace
}  // namespace floe
