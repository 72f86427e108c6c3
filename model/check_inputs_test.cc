#include "model/check_inputs.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace floe {
namespace {

std::string Check(const std::string& op, const std::vector<DType>& dtypes) {
  Node node;
  node.op = FindTensorFlowOp(op);
  std::vector<ValueInfo> inputs;
  for (const DType dtype : dtypes)
    inputs.push_back({TensorType{dtype, SymShape::UnknownRank()}, {}, {}});
  const absl::Status status = CheckInputs(node, inputs);
  return status.ok() ? "" : std::string(status.message());
}

constexpr DType kF = DType::kFloat32, kI = DType::kInt32, kL = DType::kInt64, kS = DType::kString;

TEST(CheckInputs, InputsOfOneAttributeShareItsDType) {
  EXPECT_EQ(Check("AddV2", {kF, kF}), "");
  EXPECT_EQ(Check("AddV2", {kF, kI}), "input 1 is int32, expected float32 as another input is");
  EXPECT_EQ(Check("DenseToDenseSetOperation", {kL, kI}),
            "input 1 is int32, expected int64 as another input is");
}

TEST(CheckInputs, GivenDTypesAndIndices) {
  EXPECT_EQ(Check("ResizeArea", {kF, kL}), "input 1 is int64, expected int32");
  EXPECT_EQ(Check("Transpose", {kS, kL}), "");
  EXPECT_EQ(Check("Transpose", {kS, kF}), "input 1 is float32, expected int32 or int64");
}

TEST(CheckInputs, RepeatedInputsTakeWhatTheOthersLeave) {
  EXPECT_EQ(Check("ConcatV2", {kF, kF, kF, kI}), "");
  EXPECT_EQ(Check("ConcatV2", {kF, kI, kF, kI}),
            "input 1 is int32, expected float32 as another input is");
  EXPECT_EQ(Check("ConcatV2", {kF, kF, kF}), "input 2 is float32, expected int32 or int64");
  EXPECT_EQ(Check("ConcatV2", {}), "");
  EXPECT_EQ(Check("Assert", {DType::kBool, kF, kS, kI}), "");
}

TEST(CheckInputs, WhatIsNotKnownPasses) {
  EXPECT_EQ(Check("AddV2", {DType::kInvalid, kI}), "");
  EXPECT_EQ(Check("Identity", {kS}), "");
}

std::string CheckShapes(const std::string& op, const std::vector<TensorType>& types) {
  Node node;
  node.op = FindTensorFlowOp(op);
  std::vector<ValueInfo> inputs;
  for (const TensorType& type : types) inputs.push_back({type, {}, {}});
  return std::string(CheckInputs(node, inputs).message());
}

TEST(CheckInputs, RanksAndDims) {
  const Dim any = Dim::Unknown();
  EXPECT_EQ(CheckShapes("LowerBound", {{kF, {2, 5}}, {kF, {2, 3}}}), "");
  EXPECT_EQ(CheckShapes("LowerBound", {{kF, {2, 5}}, {kF, {2}}}),
            "input 1 has shape [2], expected rank 2");
  EXPECT_EQ(CheckShapes("LowerBound", {{kF, {2, 5}}, {kF, {4, 3}}}),
            "input 1 has shape [4,3], expected [n,_] with n = 2");
  EXPECT_EQ(CheckShapes("LowerBound", {{kF, {any, 5}}, {kF, SymShape::UnknownRank()}}), "");
  EXPECT_EQ(CheckShapes("NonMaxSuppressionV2", {{kF, {7, 5}}, {kF, {7}}, {kI, {}}, {kF, {}}}),
            "input 0 has shape [7,5], expected [_,4]");
}

TEST(CheckInputs, OpsHaveAsManyInputsAsTheirTypesSay) {
  const auto inputs = [](const char* op) {
    return std::pair(FindOp(op)->min_inputs, FindOp(op)->max_inputs);
  };
  EXPECT_EQ(inputs("Transpose"), std::pair(2, 2));
  EXPECT_EQ(inputs("ConcatV2"), std::pair(2, -1));
  EXPECT_EQ(inputs("Assert"), std::pair(1, -1));
  EXPECT_EQ(inputs("Conv2D"), std::pair(2, 4));
}

}  // namespace
}  // namespace floe
