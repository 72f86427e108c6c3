#include "cli/tensor_json.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/half.h"

namespace floe::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;

absl::StatusOr<Tensor> Parse(const std::string& text, DType dtype) {
  return TensorFromJson(json::parse(text), dtype);
}

std::string ErrorOf(const std::string& text, DType dtype) {
  return std::string(Parse(text, dtype).status().message());
}

TEST(TensorJson, NestingGivesTheShape) {
  EXPECT_EQ(Parse("1.5", DType::kFloat32)->shape(), Shape());
  EXPECT_EQ(Parse("[1, 2]", DType::kFloat32)->shape(), Shape({2}));
  EXPECT_EQ(Parse("[[1], [2]]", DType::kFloat32)->shape(), Shape({2, 1}));
  EXPECT_EQ(Parse("[]", DType::kFloat32)->shape(), Shape({0}));
  EXPECT_EQ(Parse("[[], []]", DType::kFloat32)->shape(), Shape({2, 0}));
  const auto tensor = Parse("[[1, 2.5], [-3, 1e3]]", DType::kFloat64);
  EXPECT_EQ(tensor->as<double>()[1], 2.5);
  EXPECT_EQ(tensor->as<double>()[3], 1000);
}

TEST(TensorJson, RaggedListsNameThePlace) {
  EXPECT_THAT(ErrorOf("[[1, 2], [3]]", DType::kFloat32), HasSubstr("element[1]: a list of 2"));
  EXPECT_THAT(ErrorOf("[[1, 2], 3]", DType::kFloat32), HasSubstr("element[1]"));
  EXPECT_THAT(ErrorOf("[1, [2]]", DType::kFloat32), HasSubstr("element[1] is a list"));
}

TEST(TensorJson, IntegersMustFit) {
  EXPECT_EQ(*Parse("255", DType::kUInt8)->as<uint8_t>(), 255);
  EXPECT_EQ(*Parse("-128", DType::kInt8)->as<int8_t>(), -128);
  EXPECT_EQ(*Parse("18446744073709551615", DType::kUInt64)->as<uint64_t>(), UINT64_MAX);
  EXPECT_EQ(*Parse("-9223372036854775808", DType::kInt64)->as<int64_t>(), INT64_MIN);
  EXPECT_THAT(ErrorOf("[0, 256]", DType::kUInt8),
              HasSubstr("element[1]: 256 is not of type uint8"));
  EXPECT_FALSE(Parse("-1", DType::kUInt64).ok());
  EXPECT_FALSE(Parse("-129", DType::kInt8).ok());
  EXPECT_FALSE(Parse("9223372036854775808", DType::kInt64).ok());
  EXPECT_FALSE(Parse("1.0", DType::kInt32).ok());
  EXPECT_FALSE(Parse("true", DType::kInt32).ok());
  EXPECT_FALSE(Parse("1", DType::kBool).ok());
  EXPECT_FALSE(Parse("null", DType::kFloat32).ok());
}

TEST(TensorJson, SpecialFloats) {
  const auto tensor = Parse(R"(["NaN", "Infinity", "-Infinity"])", DType::kFloat16);
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_TRUE(std::isnan(static_cast<float>(tensor->as<Half>()[0])));
  EXPECT_EQ(TensorToJson(tensor->view()).dump(), R"(["NaN","Infinity","-Infinity"])");
  EXPECT_FALSE(Parse(R"("nonsense")", DType::kFloat32).ok());
}

TEST(TensorJson, Strings) {
  const auto tensor = Parse(R"(["text", {"b64": "/wA="}])", DType::kString);
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(tensor->as<std::string>()[1], std::string("\xff\x00", 2));
  EXPECT_EQ(TensorToJson(tensor->view()).dump(), R"(["text",{"b64":"/wA="}])");
  EXPECT_FALSE(Parse(R"({"b64": "?"})", DType::kString).ok());
  EXPECT_FALSE(Parse(R"({"b65": ""})", DType::kString).ok());
}

TEST(TensorJson, FloatsPrintAsTheShortestDecimal) {
  const Tensor tensor = Tensor::Vector<float>(DType::kFloat32, {0.1f, 1.0f / 3, 1e-30f, 16777216});
  EXPECT_EQ(TensorToJson(tensor.view()).dump(), "[0.1,0.33333334,1e-30,16777216.0]");
  EXPECT_EQ(ElementText(tensor.view(), 0), "0.1");
  const Tensor integers = Tensor::Vector<int64_t>(DType::kInt64, {INT64_MIN});
  EXPECT_EQ(TensorToJson(integers.view()).dump(), "[-9223372036854775808]");
}

TEST(TensorJson, HandlesHaveNoValues) {
  EXPECT_FALSE(Parse("1", DType::kResource).ok());
  EXPECT_FALSE(Parse("1", DType::kComplex64).ok());
}

}  // namespace
}  // namespace floe::cli
