#include "cli/string_array.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace floe::cli {
namespace {

using testing::HasSubstr;

Tensor Bytes(const std::string& text) {
  return Tensor::Vector(DType::kUInt8, std::vector<uint8_t>(text.begin(), text.end()));
}

TEST(StringArray, LengthsThenBytes) {
  const std::string encoded("\x02\x00\x00\x00hi\x00\x00\x00\x00\x01\x00\x00\x00\x00", 15);
  const auto strings = DecodeStrings(Bytes(encoded));
  ASSERT_TRUE(strings.ok()) << strings.status();
  ASSERT_EQ(strings->shape(), Shape({3}));
  EXPECT_EQ(strings->as<std::string>()[0], "hi");
  EXPECT_EQ(strings->as<std::string>()[1], "");
  EXPECT_EQ(strings->as<std::string>()[2], std::string(1, '\0'));
  const Tensor again = EncodeStrings(strings->view());
  EXPECT_EQ(std::string(again.as<char>(), again.bytes()), encoded);
}

TEST(StringArray, RefusesLengthsPastTheEnd) {
  for (const std::string& bad :
       {std::string("\x01\x00\x00", 3), std::string("\x02\x00\x00\x00h", 5),
        std::string("\xff\xff\xff\xff", 4)}) {
    EXPECT_THAT(std::string(DecodeStrings(Bytes(bad)).status().message()),
                HasSubstr("runs past the end"));
  }
  EXPECT_FALSE(DecodeStrings(Tensor::Vector<float>(DType::kFloat32, {1})).ok());
}

TEST(StringArray, ShapeFollowsFromTheDeclaredOne) {
  const Tensor six = Tensor::Allocate(DType::kString, {6});
  EXPECT_EQ(ShapeStrings(six, SymShape::UnknownRank())->shape(), Shape({6}));
  EXPECT_EQ(ShapeStrings(six, {Dim::Unknown(), 3})->shape(), Shape({2, 3}));
  EXPECT_EQ(ShapeStrings(six, {2, 3})->shape(), Shape({2, 3}));
  EXPECT_THAT(std::string(ShapeStrings(six, {Dim::Unknown(), 4}).status().message()),
              HasSubstr("do not fit"));
  EXPECT_THAT(std::string(ShapeStrings(six, {Dim::Unknown(), Dim::Unknown()}).status().message()),
              HasSubstr("--shape"));
  EXPECT_EQ(ShapeStrings(Tensor::Allocate(DType::kString, {1}), SymShape())->shape(), Shape());
  EXPECT_FALSE(ShapeStrings(six, {Dim::Unknown(), 0}).ok());
}

}  // namespace
}  // namespace floe::cli
