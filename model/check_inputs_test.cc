#include "model/input_types.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace floe {
namespace {

std::string Check(const std::string& op, const std::vector<DType>& dtypes) {
  Node node;
  node.op = FindTensorFlowOp(op);
  std::vector<ValueInfo> inputs;
  for (const DType dtype : dtypes) inputs.push_back({TensorType{dtype, SymShape()}, {}, {}});
  const absl::Status status = CheckInputTypes(node, inputs);
  return status.ok() ? "" : std::string(status.message());
}

constexpr DType kF = DType::kFloat32, kI = DType::kInt32, kL = DType::kInt64, kS = DType::kString;

TEST(InputTypes, InputsOfOneAttributeShareItsDType) {
  EXPECT_EQ(Check("AddV2", {kF, kF}), "");
  EXPECT_EQ(Check("AddV2", {kF, kI}), "input 1 is int32, expected float32 as another input is");
  EXPECT_EQ(Check("DenseToDenseSetOperation", {kL, kI}),
            "input 1 is int32, expected int64 as another input is");
}

TEST(InputTypes, GivenDTypesAndIndices) {
  EXPECT_EQ(Check("ResizeArea", {kF, kL}), "input 1 is int64, expected int32");
  EXPECT_EQ(Check("Transpose", {kS, kL}), "");
  EXPECT_EQ(Check("Transpose", {kS, kF}), "input 1 is float32, expected int32 or int64");
}

TEST(InputTypes, RepeatedInputsTakeWhatTheOthersLeave) {
  EXPECT_EQ(Check("ConcatV2", {kF, kF, kF, kI}), "");
  EXPECT_EQ(Check("ConcatV2", {kF, kI, kF, kI}),
            "input 1 is int32, expected float32 as another input is");
  EXPECT_EQ(Check("ConcatV2", {kF, kF, kF}), "input 2 is float32, expected int32 or int64");
  EXPECT_EQ(Check("ConcatV2", {}), "");
  EXPECT_EQ(Check("Assert", {DType::kBool, kF, kS, kI}), "");
}

TEST(InputTypes, WhatIsNotKnownPasses) {
  EXPECT_EQ(Check("AddV2", {DType::kInvalid, kI}), "");
  EXPECT_EQ(Check("Identity", {kS}), "");
}

}  // namespace
}  // namespace floe
