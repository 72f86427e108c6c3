// Constants of configurations as TensorFlow and NumPy have them.
#include "model/import/keras/constants.h"

#include <gmock/gmock.h>

#include <string>

namespace floe::keras {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<Constant> Of(const std::string& text) {
  const auto json = ParseJson(R"({"v": )" + text + "}");
  return json.ok() ? ConstantOf(Member(*json, "v")) : json.status();
}

void Expect(const std::string& text, DType dtype, const Shape& shape, bool weak) {
  const auto constant = Of(text);
  ASSERT_TRUE(constant.ok()) << text << ": " << constant.status();
  EXPECT_EQ(constant->dtype, dtype) << text;
  EXPECT_EQ(constant->tensor.shape(), shape) << text;
  EXPECT_EQ(constant->weak, weak) << text;
}

TEST(Constants, HaveTheTypesOfTensorFlow) {
  Expect("2", DType::kInt64, {}, true);
  Expect("2.5", DType::kFloat64, {}, true);
  Expect("true", DType::kBool, {}, false);
  Expect("\"a\"", DType::kString, {}, false);
  Expect("[1, 2]", DType::kInt32, {2}, false);
  Expect("[1, 3000000000]", DType::kInt64, {2}, false);
  Expect("[[1, 2.5], [3, 4]]", DType::kFloat32, {2, 2}, false);
  Expect("[[true], [false]]", DType::kBool, {2, 1}, false);
  Expect("[]", DType::kFloat32, {0}, false);
  Expect("[[], []]", DType::kFloat32, {2, 0}, false);
  Expect(R"({"class_name": "__tuple__", "items": [1, 2, 3]})", DType::kInt32, {3}, false);
  Expect(R"({"class_name": "__numpy__", "config": {"value": [[1], [2]], "dtype": "float16"}})",
         DType::kFloat16, {2, 1}, false);
  Expect(R"({"class_name": "__tensor__", "config": {"value": 7, "dtype": "uint8"}})", DType::kUInt8,
         {}, false);
}

TEST(Constants, HaveTheirValuesInOrder) {
  const auto constant = Of("[[1, -2], [3000000000, 4]]");
  ASSERT_TRUE(constant.ok());
  const auto* const values = constant->tensor.as<int64_t>();
  EXPECT_EQ(std::vector<int64_t>(values, values + 4), (std::vector<int64_t>{1, -2, 3000000000, 4}));
}

TEST(Constants, OfNoShapeOrTypeAreRefused) {
  for (const char* const text :
       {"[[1], [2, 3]]", "[1, [2]]", "[[1], 2]", "[[], 1]", "[[1, 2], []]"})
    EXPECT_THAT(std::string(Of(text).status().message()), HasSubstr("unlike lengths")) << text;
  EXPECT_FALSE(Of("[1, \"a\"]").ok());
  EXPECT_FALSE(Of("{\"a\": 1}").ok());
  EXPECT_FALSE(Of("[null]").ok());
  EXPECT_FALSE(Of("18446744073709551615").ok());
  EXPECT_FALSE(Of(R"({"class_name": "__numpy__", "config": {"value": 1, "dtype": "q"}})").ok());
  const std::string deep(64, '['), closed(64, ']');
  EXPECT_FALSE(Of(deep + "1" + closed).ok());
}

}  // namespace
}  // namespace floe::keras
