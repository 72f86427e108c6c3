#include "server/loading/placeholder_default.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace floe::server {
namespace {

using ::testing::HasSubstr;

TEST(PlaceholderDefault, Values) {
  EXPECT_EQ(DefaultTensor("p", {false, ""})->dtype(), DType::kBool);
  EXPECT_EQ(*DefaultTensor("p", {int64_t{3}, ""})->as<int32_t>(), 3);
  EXPECT_EQ(DefaultTensor("p", {int64_t{1} << 40, ""})->dtype(), DType::kInt64);
  EXPECT_EQ(*DefaultTensor("p", {0.5, ""})->as<float>(), 0.5f);
  EXPECT_EQ(*DefaultTensor("p", {int64_t{3}, "float64"})->as<double>(), 3.0);
  EXPECT_EQ(*DefaultTensor("p", {int64_t{1}, "float16"})->as<uint16_t>(), 0x3c00);
  EXPECT_EQ(*DefaultTensor("p", {3.0, "int32"})->as<int32_t>(), 3);
  EXPECT_EQ(*DefaultTensor("p", {std::string("a"), ""})->as<std::string>(), "a");
  for (const PlaceholderDefault& bad : {PlaceholderDefault{int64_t{300}, "uint8"},
                                        {int64_t{-1}, "uint64"},
                                        {0.5, "int32"},
                                        {false, "float32"},
                                        {std::string("1"), "int32"},
                                        {int64_t{1}, "string"},
                                        {false, "flot"}})
    EXPECT_THAT(std::string(DefaultTensor("p", bad).status().message()),
                HasSubstr("placeholder_defaults.p"));
}

}  // namespace
}  // namespace floe::server
