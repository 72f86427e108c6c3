// What is a number: TensorFlow 2.21's StringToNumber.
#include "base/parse_number.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>

namespace floe {
namespace {

template <class T>
std::optional<T> Parsed(const std::string& text) {
  T value{};
  return ParseNumber(text, &value) ? std::optional<T>(value) : std::nullopt;
}

TEST(ParseNumber, Integers) {
  EXPECT_EQ(Parsed<int32_t>(" 7\t"), 7);
  EXPECT_EQ(Parsed<int64_t>("\n3\v"), 3);
  EXPECT_EQ(Parsed<int32_t>("+7"), 7);
  EXPECT_EQ(Parsed<int32_t>("-2147483648"), std::numeric_limits<int32_t>::min());
  EXPECT_EQ(Parsed<int64_t>("-9223372036854775808"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(Parsed<uint32_t>("4294967295"), std::numeric_limits<uint32_t>::max());
  EXPECT_EQ(Parsed<uint64_t>("18446744073709551615"), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(Parsed<uint64_t>(" +7"), 7u);
}

TEST(ParseNumber, IntegersPastTheirRangeAreNone) {
  EXPECT_EQ(Parsed<int32_t>("2147483648"), std::nullopt);
  EXPECT_EQ(Parsed<int32_t>("-2147483649"), std::nullopt);
  EXPECT_EQ(Parsed<int64_t>("9223372036854775808"), std::nullopt);
  EXPECT_EQ(Parsed<uint32_t>("4294967296"), std::nullopt);
  EXPECT_EQ(Parsed<uint64_t>("18446744073709551616"), std::nullopt);
  EXPECT_EQ(Parsed<uint32_t>("-0"), std::nullopt);
  EXPECT_EQ(Parsed<uint64_t>("-1"), std::nullopt);
}

TEST(ParseNumber, TextWithMoreThanANumberIsNone) {
  for (const std::string& text :
       {std::string(), std::string(" "), std::string("- 7"), std::string("--5"),
        std::string("7\0", 2), std::string("1\0002", 3), std::string("1 2"), std::string("1_0")}) {
    EXPECT_EQ(Parsed<int64_t>(text), std::nullopt) << text;
    EXPECT_EQ(Parsed<double>(text), std::nullopt) << text;
  }
  EXPECT_EQ(Parsed<int64_t>("0x10"), std::nullopt);
  EXPECT_EQ(Parsed<int64_t>("1.0"), std::nullopt);
  EXPECT_EQ(Parsed<float>("1e"), std::nullopt);
  EXPECT_EQ(Parsed<float>("infin"), std::nullopt);
}

TEST(ParseNumber, Floats) {
  EXPECT_EQ(Parsed<float>(".5"), 0.5f);
  EXPECT_EQ(Parsed<double>("5."), 5.0);
  EXPECT_EQ(Parsed<float>("0x1p3"), 8.0f);
  EXPECT_EQ(Parsed<double>("0x10"), 16.0);
  EXPECT_EQ(Parsed<float>("0.1"), 0.1f);  // rounded once, not by way of double
  EXPECT_EQ(Parsed<float>("-inf"), -std::numeric_limits<float>::infinity());
  EXPECT_EQ(Parsed<double>("Infinity"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(Parsed<float>("1e400"), std::numeric_limits<float>::infinity());
  EXPECT_EQ(Parsed<double>("1e-400"), 0.0);
  const std::optional<float> nan = Parsed<float>("NaN");
  EXPECT_TRUE(nan.has_value() && std::isnan(*nan));
}

}  // namespace
}  // namespace floe
