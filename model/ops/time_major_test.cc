// Rows in dim 1: which ops bring them there, keep them and bring them back.
#pragma GCC diagnostic ignored "-Wfree-nonheap-object"  // g++ 12 takes inlined dims for heap memory
#include <gtest/gtest.h>

#include "model/op_def.h"

namespace floe {
namespace {

constexpr RowMark kC = RowMark::kConstant, kR = RowMark::kRows, k1 = RowMark::kRowsDim1,
                  kM = RowMark::kMixed, kU = RowMark::kUnknown;
const Dim kRows = Dim::Rows();

struct In {
  RowMark mark;
  TensorType type;
  Tensor constant = {};
};
In Numbers(RowMark mark, SymShape shape) { return {mark, {DType::kFloat32, std::move(shape)}}; }
In Ints(const std::vector<int32_t>& values) {
  return {kC,
          {DType::kInt32, {Dim(static_cast<int64_t>(values.size()))}},
          Tensor::Vector(DType::kInt32, values)};
}
In Index() { return {kC, {DType::kInt32, SymShape()}}; }
In List(RowMark mark, bool written, SymShape element, Dim size = 5) {
  return {mark,
          {DType::kVariant, SymShape(),
           std::make_shared<const ListType>(ListType{size, written, std::move(element)})}};
}

RowMark Mark(const std::string& op, const std::vector<In>& inputs, Attrs attrs = {}) {
  if (!attrs.Has("element_dtype")) attrs.Set("element_dtype", DType::kFloat32);
  Node node;
  node.op = FindOp(op);
  node.attrs = attrs;
  std::vector<ValueInfo> infos;
  std::vector<RowMark> marks;
  for (const In& in : inputs) {
    infos.push_back({in.type, in.constant, {}});
    marks.push_back(in.mark);
  }
  const auto types = node.op->infer({node, infos});
  EXPECT_TRUE(types.ok()) << op << ": " << types.status();
  EXPECT_NE(node.op->time_major, nullptr) << op;
  return node.op->time_major({node, marks, infos, *types});
}

const SymShape kMajor = {5, kRows, 3};  // [time, rows, channels]

TEST(TimeMajor, TransposeMovesRowsThereAndBack) {
  EXPECT_EQ(Mark("Transpose", {Numbers(kR, {kRows, 5, 3}), Ints({1, 0, 2})}), k1);
  EXPECT_EQ(Mark("Transpose", {Numbers(k1, kMajor), Ints({1, 0, 2})}), kR);
  EXPECT_EQ(Mark("Transpose", {Numbers(k1, kMajor), Ints({-2, -3, -1})}), kR);
  EXPECT_EQ(Mark("Transpose", {Numbers(k1, kMajor), Ints({2, 1, 0})}), k1);
  EXPECT_EQ(Mark("Transpose", {Numbers(k1, kMajor), Ints({0, 2, 1})}), kM);
  EXPECT_EQ(Mark("Transpose", {Numbers(kR, {Dim::Rows(2), 5, 3}), Ints({1, 0, 2})}), k1);
  EXPECT_EQ(Mark("Transpose", {Numbers(k1, {5, Dim::Rows(2), 3}), Ints({1, 2, 0})}), kR);
  EXPECT_EQ(Mark("Transpose", {Numbers(k1, {5, Dim::Rows(2), 3}), Ints({2, 1, 0})}), k1);
  EXPECT_EQ(Mark("Transpose", {Numbers(kR, {Dim::Affine(1, 1), 5, 3}), Ints({1, 0, 2})}), kM);
  EXPECT_EQ(Mark("Transpose", {Numbers(k1, {5, Dim::Rows(2), 3}), Ints({0, 2, 1})}), kM);
  EXPECT_EQ(Mark("Transpose", {Numbers(kR, {kRows, Dim::Unknown(), 3}), Ints({1, 0, 2})}), kM);
  EXPECT_EQ(Mark("Transpose", {Numbers(kU, kMajor), Ints({1, 0, 2})}), kU);
}

TEST(TimeMajor, RowsGoBehindADimOf1AndBack) {
  const SymShape blocks = {1, Dim::Rows(5), 8, 1};
  const auto reshape = [](In x, const std::vector<int32_t>& base,
                          const std::vector<int32_t>& rows) {
    Node node;
    node.op = FindOp("Reshape");
    ValueInfo shape{{DType::kInt32, {Dim(static_cast<int64_t>(base.size()))}},
                    Tensor::Vector(DType::kInt32, base),
                    Tensor::Vector(DType::kInt32, rows)};
    const std::vector<ValueInfo> infos{{x.type, x.constant, {}}, shape};
    const std::vector<RowMark> marks{x.mark, kC};
    const auto types = node.op->infer({node, infos});
    EXPECT_TRUE(types.ok()) << types.status();
    return node.op->time_major({node, marks, infos, *types});
  };
  EXPECT_EQ(reshape(Numbers(kR, {kRows, 5, 8}), {1, 0, 8, 1}, {0, 5, 0, 0}), k1);
  EXPECT_EQ(reshape(Numbers(k1, blocks), {0, 5, 8}, {1, 0, 0}), kR);
  EXPECT_EQ(reshape(Numbers(k1, blocks), {1, 0, 4, 2}, {0, 5, 0, 0}), k1);
  // Blocks of several leading values do not lie one after the other.
  EXPECT_EQ(reshape(Numbers(k1, {2, kRows, 8}), {0, 2, 8}, {1, 0, 0}), kM);
  EXPECT_EQ(reshape(Numbers(kR, {kRows, 10, 8}), {2, 0, 8}, {0, 5, 0}), kM);
  EXPECT_EQ(reshape(Numbers(kC, {kRows, 5, 8}), {1, 0, 8, 1}, {0, 5, 0, 0}), kM);
  EXPECT_EQ(
      Mark("ExpandDims", {Numbers(kR, {kRows, 8}),
                          {kC, {DType::kInt32, {}}, Tensor::Scalar<int32_t>(DType::kInt32, 0)}}),
      k1);
}

TEST(TimeMajor, ChannelsOfRequestsAreNormalisedByThemselves) {
  Attrs attrs;
  attrs.Set("data_format", std::string("NCHW"));
  const Dim channels = Dim::Rows(5);
  const In x = Numbers(k1, {1, channels, 8, 1}), vector = Numbers(kR, {channels}),
           none = Numbers(kC, {0});
  const auto mark = [&](const std::vector<In>& inputs) {
    return Mark("FusedBatchNormV3", inputs, attrs);
  };
  EXPECT_EQ(mark({x, vector, vector, none, none}), k1);
  EXPECT_EQ(mark({Numbers(kR, {1, channels, 8, 1}), vector, vector, none, none}), kM);
  EXPECT_EQ(mark({x, Numbers(kM, {channels}), vector, none, none}), kM);
  EXPECT_EQ(mark({x, vector, vector, Numbers(kR, {channels}), none}), kM);
  attrs.Set("exponential_avg_factor", 0.5F);
  EXPECT_EQ(mark({x, vector, vector, vector, vector}), kM);
  attrs.Set("exponential_avg_factor", 1.0F);
  attrs.Set("is_training", false);
  EXPECT_EQ(mark({x, vector, vector, vector, vector}), kM);
  attrs.Set("is_training", true);
  attrs.Set("data_format", std::string("NHWC"));  // dim 1 is no channel
  EXPECT_EQ(mark({x, Numbers(kR, {1}), Numbers(kR, {1}), none, none}), kM);
}

TEST(TimeMajor, StepsArePackedAndUnpacked) {
  Attrs attrs, last;
  attrs.Set("num", int64_t{5});
  last.Set("axis", int64_t{1});
  const In step = Numbers(kR, {kRows, 3});
  EXPECT_EQ(Mark("Pack", {step, step, step}), k1);
  EXPECT_EQ(Mark("Pack", {step, step, step}, last), kM);
  EXPECT_EQ(Mark("Pack", {step, Numbers(kC, {kRows, 3})}), kM);
  EXPECT_EQ(Mark("Pack", {step, Numbers(kM, {kRows, 3})}), kM);
  EXPECT_EQ(Mark("Unpack", {Numbers(k1, kMajor)}, attrs), kR);
  attrs.Set("num", int64_t{3});
  attrs.Set("axis", int64_t{2});
  EXPECT_EQ(Mark("Unpack", {Numbers(k1, kMajor)}, attrs), kM);
}

TEST(TimeMajor, ElementwiseNeedsConstantsThatAreTheSameForAllRows) {
  EXPECT_EQ(Mark("Relu", {Numbers(k1, kMajor)}), k1);
  EXPECT_EQ(Mark("Add", {Numbers(k1, kMajor), Numbers(k1, kMajor)}), k1);
  EXPECT_EQ(Mark("Add", {Numbers(k1, kMajor), Numbers(kC, {3})}), k1);
  EXPECT_EQ(Mark("Add", {Numbers(k1, kMajor), Numbers(kC, {5, 1, 3})}), k1);
  EXPECT_EQ(Mark("Add", {Numbers(k1, {5, Dim::Rows(2), 3}), Numbers(kC, {5, 1, 3})}), k1);
  EXPECT_EQ(Mark("Add", {Numbers(k1, kMajor), Numbers(kC, {kRows, 3})}), kM);
  EXPECT_EQ(Mark("Add", {Numbers(k1, kMajor), Numbers(kR, {kRows, 3})}), kM);
  EXPECT_EQ(Mark("Add", {Numbers(k1, {kRows, kRows, 3}), Numbers(kC, {3})}), kM);
}

TEST(TimeMajor, SlicesOfTime) {
  const auto slice = [](const std::vector<int32_t>& begin, const std::vector<int32_t>& end,
                        const std::vector<int32_t>& stride, int64_t begin_mask, int64_t end_mask,
                        int64_t shrink) {
    Attrs attrs;
    attrs.Set("begin_mask", begin_mask);
    attrs.Set("end_mask", end_mask);
    attrs.Set("shrink_axis_mask", shrink);
    return Mark("StridedSlice", {Numbers(k1, kMajor), Ints(begin), Ints(end), Ints(stride)}, attrs);
  };
  EXPECT_EQ(slice({-1}, {0}, {1}, 0, 0, 1), kR);           // the last step
  EXPECT_EQ(slice({0}, {0}, {2}, 1, 1, 0), k1);            // every other step
  EXPECT_EQ(slice({1, 0}, {4, 0}, {1, 1}, 0, 2, 0), k1);   // all rows of some steps
  EXPECT_EQ(slice({1, 1}, {4, 0}, {1, 1}, 0, 2, 0), kM);   // all rows but the first
  EXPECT_EQ(slice({0, 0}, {0, 0}, {1, -1}, 3, 3, 0), kM);  // rows backwards
  EXPECT_EQ(slice({0, 0}, {0, 0}, {1, 1}, 1, 1, 2), kM);   // row 0 of every step
}

TEST(TimeMajor, OtherAxesMayBeReversedAndJoined) {
  EXPECT_EQ(Mark("ReverseV2", {Numbers(k1, kMajor), Ints({0})}), k1);
  EXPECT_EQ(Mark("ReverseV2", {Numbers(k1, kMajor), Ints({-2})}), kM);
  EXPECT_EQ(Mark("ConcatV2",
                 {Numbers(k1, kMajor),
                  Numbers(k1, kMajor),
                  {kC, {DType::kInt32, SymShape()}, Tensor::Scalar<int32_t>(DType::kInt32, -1)}}),
            k1);
  EXPECT_EQ(Mark("ConcatV2",
                 {Numbers(k1, kMajor),
                  Numbers(kC, {5, 1, 3}),
                  {kC, {DType::kInt32, SymShape()}, Tensor::Scalar<int32_t>(DType::kInt32, 1)}}),
            kM);
}

TEST(TimeMajor, ListsHoldRowsOfEveryStep) {
  const SymShape open = {Dim::Unknown(), 3}, rows = {kRows, 3};
  EXPECT_EQ(Mark("TensorListFromTensor", {Numbers(k1, kMajor), Ints({-1, 3})}), kR);
  EXPECT_EQ(Mark("TensorListFromTensor", {Numbers(kR, {kRows, 3}), Ints({3})}), RowMark::kRowList);
  EXPECT_EQ(Mark("TensorListSetItem", {List(kC, false, open), Index(), Numbers(kR, rows)}), kR);
  EXPECT_EQ(Mark("TensorListSetItem", {List(kR, true, rows), Index(), Numbers(kR, rows)}), kR);
  EXPECT_EQ(Mark("TensorListSetItem", {List(kR, true, rows), Index(), Numbers(kC, {1, 3})}), kM);
  EXPECT_EQ(Mark("TensorListSetItem", {List(kC, true, {1, 3}), Index(), Numbers(kR, rows)}), kM);
  EXPECT_EQ(Mark("TensorListGetItem", {List(kR, true, rows), Index(), Ints({-1, 3})}), kR);
  EXPECT_EQ(Mark("TensorListGetItem",
                 {List(kR, true, rows), {kM, {DType::kInt32, SymShape()}}, Ints({-1, 3})}),
            kM);
  EXPECT_EQ(Mark("TensorListGetItem", {List(kR, true, open), Index(), Ints({-1, 3})}), kM);
  EXPECT_EQ(Mark("TensorListStack", {List(kR, true, rows), Ints({-1, 3})}), k1);
  EXPECT_EQ(Mark("TensorListStack", {List(kR, true, rows, Dim::Unknown()), Ints({-1, 3})}), kM);
  EXPECT_EQ(Mark("TensorListLength", {List(kR, true, rows)}), kC);
}

TEST(TimeMajor, WhatIsKnownOfListsIsJoined) {
  const auto list = [](Dim size, bool written, SymShape element) {
    return std::make_shared<const ListType>(ListType{size, written, std::move(element)});
  };
  const ListTypePtr fresh = list(5, false, {Dim::Unknown(), 3}), full = list(5, true, {kRows, 3}),
                    other = list(4, true, {1, 3});
  EXPECT_TRUE(SameLists(JoinLists(fresh, full), full));
  EXPECT_TRUE(SameLists(JoinLists(full, fresh), full));
  EXPECT_TRUE(SameLists(JoinLists(full, other), list(Dim::Unknown(), true, {Dim::Unknown(), 3})));
  EXPECT_TRUE(
      SameLists(JoinLists(list(5, false, {1, 3}), full), list(5, true, {Dim::Unknown(), 3})));
  EXPECT_EQ(JoinLists(full, nullptr), nullptr);
}

}  // namespace
}  // namespace floe
