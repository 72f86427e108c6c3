#include "runtime/passes/line_slice.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "runtime/evaluate.h"

namespace floe {
namespace {

using Ints = std::vector<int32_t>;

const SymShape kImage{Dim::Rows(), 4, 20};

ValueInfo Known(const Ints& values) {
  const Tensor constant = Tensor::Vector(DType::kInt32, values);
  return {TensorType{DType::kInt32, SymShape(constant.shape())}, constant, {}};
}

Node NodeOf(const std::string& op, const std::vector<std::pair<std::string, int64_t>>& masks = {}) {
  Node node;
  node.op = FindOp(op);
  for (const auto& [mask, bits] : masks) node.attrs.Set(mask, bits);
  return node;
}

// By inference, so that the result's shape is the op's own.
std::optional<int64_t> StartOf(const Node& node, std::vector<ValueInfo> inputs) {
  inputs.insert(inputs.begin(), {TensorType{DType::kFloat32, kImage}, {}, {}});
  const auto types = InferTypes(node, inputs);
  EXPECT_TRUE(types.ok()) << types.status();
  return types.ok() ? LineSliceStart(node, inputs, (*types)[0].shape) : std::nullopt;
}

std::optional<int64_t> Slice(const Ints& begin, const Ints& size) {
  return StartOf(NodeOf("Slice"), {Known(begin), Known(size)});
}

std::optional<int64_t> Strided(const Ints& begin, const Ints& end, const Ints& strides,
                               const std::vector<std::pair<std::string, int64_t>>& masks) {
  return StartOf(NodeOf("StridedSlice", masks), {Known(begin), Known(end), Known(strides)});
}

TEST(LineSlice, Slices) {
  EXPECT_EQ(Slice({0, 0, 3}, {-1, 4, 9}), 3);
  EXPECT_EQ(Slice({0, 0, 0}, {-1, -1, 20}), 0);
  EXPECT_EQ(Slice({0, 0, 5}, {-1, -1, -1}), 5);
  EXPECT_EQ(Slice({0, 1, 3}, {-1, 3, 9}), std::nullopt) << "not all lines";
  EXPECT_EQ(Slice({1, 0, 3}, {-1, 4, 9}), std::nullopt) << "not all rows";
}

// x[..., begin:end]
TEST(LineSlice, StridedSlicesOfTheLastDim) {
  const auto of_last = [](int32_t begin, int32_t end, int64_t begin_mask = 0) {
    return Strided({0, begin}, {0, end}, {1, 1},
                   {{"ellipsis_mask", 1}, {"begin_mask", begin_mask}});
  };
  EXPECT_EQ(of_last(3, 12), 3);
  EXPECT_EQ(of_last(-7, 18), 13);
  EXPECT_EQ(of_last(-50, 18), 0) << "before the front";
  EXPECT_EQ(of_last(50, 60), 20) << "behind the end";
  EXPECT_EQ(of_last(9, 18, 2), 0) << "from the front, whatever begin says";
}

TEST(LineSlice, StridedSlicesOfAllDims) {
  const std::vector<std::pair<std::string, int64_t>> all_rows = {{"begin_mask", 1},
                                                                 {"end_mask", 1}};
  EXPECT_EQ(Strided({0, 0, 2}, {0, 4, 9}, {1, 1, 1}, all_rows), 2);
  EXPECT_EQ(Strided({0, -4, 2}, {0, 9, 9}, {1, 1, 1}, all_rows), 2);
  EXPECT_EQ(Strided({0, 1, 2}, {0, 4, 9}, {1, 1, 1}, all_rows), std::nullopt) << "not all lines";
  EXPECT_EQ(Strided({0}, {0}, {1}, all_rows), 0) << "the other dims in full";
}

TEST(LineSlice, WhatIsNoWindowOfLines) {
  const std::vector<std::pair<std::string, int64_t>> last = {{"ellipsis_mask", 1}};
  EXPECT_EQ(Strided({0, 2}, {0, 10}, {1, 2}, last), std::nullopt) << "every second element";
  EXPECT_EQ(Strided({0, 19}, {0, 3}, {1, -1}, last), std::nullopt) << "backwards";
  EXPECT_EQ(Strided({0, 2}, {0, 3}, {1, 1}, {{"ellipsis_mask", 1}, {"shrink_axis_mask", 2}}),
            std::nullopt)
      << "one element, and no dim";
  EXPECT_EQ(Strided({0, 0, 2}, {0, 0, 9}, {1, 1, 1}, {{"ellipsis_mask", 1}, {"new_axis_mask", 2}}),
            std::nullopt)
      << "a dim more";
  EXPECT_EQ(Strided({0, 0, 5}, {0, 0, 6}, {1, 1, 1},
                    {{"ellipsis_mask", 1}, {"new_axis_mask", 2}, {"shrink_axis_mask", 4}}),
            std::nullopt)
      << "a dim for another";
  // As long as a dim, but turned over.
  EXPECT_EQ(Strided({0, -1, 2}, {0, -5, 9}, {1, -1, 1}, {{"begin_mask", 1}, {"end_mask", 1}}),
            std::nullopt);
}

TEST(LineSlice, BeginsThatOnlyTheRunKnows) {
  std::vector<ValueInfo> inputs = {Known({0, 0, 3}), Known({-1, 4, 9})};
  inputs[0].constant = Tensor();
  inputs.insert(inputs.begin(), {TensorType{DType::kFloat32, kImage}, {}, {}});
  EXPECT_EQ(LineSliceStart(NodeOf("Slice"), inputs, SymShape{Dim::Rows(), 4, 9}), std::nullopt);
}

}  // namespace
}  // namespace floe
