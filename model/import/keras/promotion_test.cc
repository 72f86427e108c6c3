// Types that meet, against keras.backend.result_type of Keras 3.15 on TensorFlow.
#include "model/import/keras/promotion.h"

#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <string>

namespace floe::keras {
namespace {

// In the order of the rows and columns below; the last two are Python's int and float.
const std::vector<OperandType>& TypeNames() {
  static const std::vector<OperandType> types{
      {DType::kBool},    {DType::kUInt8},       {DType::kUInt16},       {DType::kUInt32},
      {DType::kUInt64},  {DType::kInt8},        {DType::kInt16},        {DType::kInt32},
      {DType::kInt64},   {DType::kBFloat16},    {DType::kFloat16},      {DType::kFloat32},
      {DType::kFloat64}, {DType::kInt64, true}, {DType::kFloat64, true}};
  return types;
}

// What Keras prints for each pair, with its names cut to a letter and the bytes.
constexpr const char* kKeras[] = {
    "b1 u1 u2 u4 u4 i1 i2 i4 i8 bf f2 f4 f8 i4 f4", "u1 u1 u2 u4 u4 i2 i2 i4 i8 bf f2 f4 f8 u1 f4",
    "u2 u2 u2 u4 u4 i4 i4 i4 i8 bf f2 f4 f8 u2 f4", "u4 u4 u4 u4 u4 i8 i8 i8 i8 bf f2 f4 f8 u4 f4",
    "u4 u4 u4 u4 u4 f4 f4 f4 f4 bf f2 f4 f8 u4 f4", "i1 i2 i4 i8 f4 i1 i2 i4 i8 bf f2 f4 f8 i1 f4",
    "i2 i2 i4 i8 f4 i2 i2 i4 i8 bf f2 f4 f8 i2 f4", "i4 i4 i4 i8 f4 i4 i4 i4 i8 bf f2 f4 f8 i4 f4",
    "i8 i8 i8 i8 f4 i8 i8 i8 i8 bf f2 f4 f8 i8 f4", "bf bf bf bf bf bf bf bf bf bf f4 f4 f8 bf bf",
    "f2 f2 f2 f2 f2 f2 f2 f2 f2 f4 f2 f4 f8 f2 f2", "f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f8 f4 f4",
    "f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8", "i4 u1 u2 u4 u4 i1 i2 i4 i8 bf f2 f4 f8 i4 f4",
    "f4 f4 f4 f4 f4 f4 f4 f4 f4 bf f2 f4 f8 f4 f4"};

DType NamedType(const std::string& name) {
  static const std::map<std::string, DType> names{
      {"b1", DType::kBool},    {"u1", DType::kUInt8},   {"u2", DType::kUInt16},
      {"u4", DType::kUInt32},  {"i1", DType::kInt8},    {"i2", DType::kInt16},
      {"i4", DType::kInt32},   {"i8", DType::kInt64},   {"bf", DType::kBFloat16},
      {"f2", DType::kFloat16}, {"f4", DType::kFloat32}, {"f8", DType::kFloat64}};
  return names.at(name);
}

TEST(Promotion, OfEveryPairIsThatOfKeras) {
  for (size_t i = 0; i < TypeNames().size(); ++i) {
    std::istringstream row(kKeras[i]);
    std::string name;
    for (size_t j = 0; j < TypeNames().size() && row >> name; ++j)
      EXPECT_EQ(ResultType({TypeNames()[i], TypeNames()[j]}), NamedType(name)) << i << " and " << j;
  }
}

TEST(Promotion, OfOneAndOfNone) {
  EXPECT_EQ(ResultType({}), DType::kFloat32);
  EXPECT_EQ(ResultType({{DType::kInt8}}), DType::kInt8);
  EXPECT_EQ(ResultType({{DType::kUInt64}}), DType::kUInt32);
  EXPECT_EQ(ResultType({{DType::kInt64, true}}), DType::kInt32);
  EXPECT_EQ(ResultType({{DType::kString}, {DType::kString}}), DType::kString);
  EXPECT_EQ(ResultType({{DType::kString}, {DType::kInt32}}), DType::kInvalid);
  EXPECT_EQ(ResultType({{DType::kInt8}, {DType::kUInt8}, {DType::kFloat16}}), DType::kFloat16);
}

}  // namespace
}  // namespace floe::keras
