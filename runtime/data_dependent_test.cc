// Ops whose output sizes depend on data, and transposed convolutions. Expected values follow from
// the definitions by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/budget.h"
#include "model/half.h"
#include "runtime/run_op.h"

namespace floe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(DataDependent, WhereGivesPlacesInOrder) {
  const auto out = RunOp("Where", {Ints({2, 3}, {0, 5, 0, -1, 0, 2})});
  EXPECT_THAT(Values<int64_t>(out), ElementsAre(0, 1, 1, 0, 1, 2));
  EXPECT_EQ(out->at(0).shape(), Shape({3, 2}));
  EXPECT_EQ(RunOp("Where", {Ints({2}, {0, 0})})->at(0).shape(), Shape({0, 1}));
}

TEST(DataDependent, UniqueKeepsTheOrderOfFirstSight) {
  const auto out = RunOp("UniqueWithCounts", {Ints({6}, {7, 3, 7, 7, 1, 3})});
  EXPECT_THAT(Values<int32_t>(out, 0), ElementsAre(7, 3, 1));
  EXPECT_THAT(Values<int32_t>(out, 1), ElementsAre(0, 1, 0, 0, 2, 1));
  EXPECT_THAT(Values<int32_t>(out, 2), ElementsAre(3, 2, 1));
}

TEST(DataDependent, ListDiff) {
  const auto out = RunOp("ListDiff", {Ints({4}, {1, 2, 3, 2}), Ints({1}, {2})});
  EXPECT_THAT(Values<int32_t>(out, 0), ElementsAre(1, 3));
  EXPECT_THAT(Values<int32_t>(out, 1), ElementsAre(0, 2));
}

TEST(DataDependent, PartitionsNobodyReadsAreLeftOut) {
  const std::vector<Tensor> inputs = {Floats({3, 2}, {1, 2, 3, 4, 5, 6}), Ints({3}, {1, 0, 1})};
  const Attrs two = With("num_partitions", int64_t{2});
  const auto out = RunOp("DynamicPartition", inputs, two, 2);
  EXPECT_THAT(Values<float>(out, 0), ElementsAre(3, 4));
  EXPECT_THAT(Values<float>(out, 1), ElementsAre(1, 2, 5, 6));
  EXPECT_THAT(Values<float>(RunOp("DynamicPartition", inputs, two, 1)), ElementsAre(3, 4));
  EXPECT_THAT(Message(RunOp("DynamicPartition", {inputs[0], Ints({3}, {0, 2, 0})}, two, 2)),
              HasSubstr("partition 2 is not in [0, 2)"));
}

TEST(DataDependent, SegmentsWithoutElements) {
  const std::vector<Tensor> inputs = {Floats({3}, {-4, -2, 5}), Ints({3}, {0, 0, 2})};
  EXPECT_THAT(Values<float>(RunOp("SegmentSum", inputs)), ElementsAre(-6, 0, 5));
  EXPECT_THAT(Values<float>(RunOp("SegmentMean", inputs)), ElementsAre(-3, 0, 5));
  EXPECT_THAT(Values<float>(RunOp("SegmentProd", inputs)), ElementsAre(8, 1, 5));
  EXPECT_THAT(Values<float>(RunOp("SegmentMax", inputs)), ElementsAre(-2, 0, 5));
  EXPECT_THAT(Values<float>(RunOp("SegmentMin", inputs)), ElementsAre(-4, 0, 5));
  EXPECT_THAT(Message(RunOp("SegmentSum", {inputs[0], Ints({3}, {0, 2, 1})})),
              HasSubstr("increasing order: 1 at place 2"));
  EXPECT_THAT(Values<float>(RunOp("SparseSegmentMean",
                                  {inputs[0], Ints({3}, {0, 2, 1}), Ints({3}, {0, 0, 1})})),
              ElementsAre(0.5f, -2));
}

TEST(DataDependent, BoxesThatOverlapAreDropped) {
  // 0 and 1 share 0.9 of 1.1, 2 stands apart.
  const Tensor boxes = Floats({3, 4}, {0, 0, 1, 1, 0, 0.1f, 1, 1.1f, 0, 3, 1, 4});
  const Tensor scores = Floats({3}, {0.5f, 0.9f, 0.7f});
  const Tensor most = Ints({}, {3}), iou = Floats({}, {0.5f}), least = Floats({}, {0.6f});
  EXPECT_THAT(Values<int32_t>(RunOp("NonMaxSuppressionV2", {boxes, scores, most, iou})),
              ElementsAre(1, 2));
  const auto padded = RunOp("NonMaxSuppressionV4", {boxes, scores, most, iou, least},
                            With("pad_to_max_output_size", true));
  EXPECT_THAT(Values<int32_t>(padded, 0), ElementsAre(1, 2, 0));
  EXPECT_THAT(Values<int32_t>(padded, 1), ElementsAre(2));
  // IoU 0.9 / 1.1; soft: 0.5 * exp(-0.5 / 0.5 * iou^2).
  const auto soft = RunOp("NonMaxSuppressionV5", {boxes, scores, most, Floats({}, {1.f}),
                                                  Floats({}, {0.f}), Floats({}, {0.5f})});
  EXPECT_THAT(Values<int32_t>(soft, 0), ElementsAre(1, 2, 0));
  EXPECT_NEAR(Values<float>(soft, 1)[2], 0.2560023, 1e-5);
}

TEST(DataDependent, ABoxWhoseSoftScoreBecomesNaNIsLeftOut) {
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor boxes = Floats({2, 4}, {0, 0, inf, inf, 0, 0, inf, 1});
  const auto soft =
      RunOp("NonMaxSuppressionV5", {boxes, Floats({2}, {0.9f, 0.5f}), Ints({}, {2}),
                                    Floats({}, {1.f}), Floats({}, {0.f}), Floats({}, {0.5f})});
  ASSERT_TRUE(soft.ok()) << soft.status();
  EXPECT_EQ(Values<int32_t>(soft, 0)[0], 0);
}

TEST(DataDependent, StringSplit) {
  const Tensor texts = Strings({"a,b,,c", ""});
  const auto out = RunOp("StringSplitV2", {texts, Strings({","}).Reshaped(Shape())});
  EXPECT_THAT(Values<std::string>(out, 1), ElementsAre("a", "b", "", "c", ""));
  EXPECT_THAT(Values<int64_t>(out, 2), ElementsAre(2, 4));
  const auto words = RunOp("StringSplitV2", {Strings({" x  y z"}), Strings({""}).Reshaped(Shape())},
                           With("maxsplit", int64_t{1}));
  EXPECT_THAT(Values<std::string>(words, 1), ElementsAre("x", "y z"));
}

TEST(DataDependent, Strings) {
  EXPECT_THAT(Values<std::string>(RunOp("StringUpper", {Strings({"aZ\xc3\xa4"})},
                                        With("encoding", std::string("utf-8")))),
              ElementsAre("AZ\xc3\x84"));
  EXPECT_THAT(Values<std::string>(RunOp("AsString", {Floats({1}, {1.5f})})),
              ElementsAre("1.500000"));
  EXPECT_THAT(Values<float>(RunOp("StringToNumber", {Strings({" 2.5", "-1e3"})})),
              ElementsAre(2.5f, -1000.f));
  EXPECT_THAT(Message(RunOp("StringToNumber", {Strings({"2x"})})), HasSubstr("'2x'"));
}

TEST(DataDependent, SparseReshape) {
  const auto out = RunOp("SparseReshape",
                         {Longs({2, 2}, {0, 1, 1, 2}), Longs({2}, {2, 3}), Longs({2}, {3, -1})});
  EXPECT_THAT(Values<int64_t>(out, 0), ElementsAre(0, 1, 2, 1));
  EXPECT_THAT(Values<int64_t>(out, 1), ElementsAre(3, 2));
}

TEST(DataDependent, EmptyRowsAreFilled) {
  const auto out = RunOp("SparseFillEmptyRows", {Longs({2, 2}, {2, 1, 0, 3}), Floats({2}, {5, 6}),
                                                 Longs({2}, {4, 4}), Floats({}, {-1})});
  EXPECT_THAT(Values<int64_t>(out, 0), ElementsAre(0, 3, 1, 0, 2, 1, 3, 0));
  EXPECT_THAT(Values<float>(out, 1), ElementsAre(6, -1, 5, -1));
  EXPECT_THAT(Values<bool>(out, 2), ElementsAre(false, true, false, true));
  EXPECT_THAT(Values<int64_t>(out, 3), ElementsAre(2, 0));
}

TEST(DataDependent, CtcMergesRepetitionsButNotAcrossBlanks) {
  // Best classes 0 0 2(blank) 0 1.
  const Tensor logits = Floats({5, 1, 3}, {3, 0, 0, 3, 0, 0, 0, 0, 3, 3, 0, 0, 0, 3, 0});
  const auto out =
      RunOp("CTCGreedyDecoder", {logits, Ints({1}, {5})}, With("merge_repeated", true));
  EXPECT_THAT(Values<int64_t>(out, 1), ElementsAre(0, 0, 1));
  EXPECT_THAT(Values<float>(out, 3), ElementsAre(-15));
  EXPECT_THAT(Values<int64_t>(RunOp("CTCGreedyDecoder", {logits, Ints({1}, {5})}), 1),
              ElementsAre(0, 0, 0, 1));
}

TEST(DataDependent, TransposedConvolutionSpreadsTheFilter) {
  Attrs attrs = With("padding", std::string("VALID"));
  attrs.Set("strides", std::vector<int64_t>{1, 2, 2, 1});
  const Tensor filter = Floats({1, 3, 1, 1}, {1, 10, 100});
  const Tensor gradient = Floats({1, 1, 2, 1}, {1, 2});
  EXPECT_THAT(Values<float>(
                  RunOp("Conv2DBackpropInput", {Ints({4}, {1, 1, 5, 1}), filter, gradient}, attrs)),
              ElementsAre(1, 10, 102, 20, 200));
  attrs.Set("padding", std::string("SAME"));
  EXPECT_THAT(Values<float>(
                  RunOp("Conv2DBackpropInput", {Ints({4}, {1, 1, 4, 1}), filter, gradient}, attrs)),
              ElementsAre(1, 10, 102, 20));
  EXPECT_THAT(
      Message(RunOp("Conv2DBackpropInput", {Ints({4}, {1, 1, 9, 1}), filter, gradient}, attrs)),
      HasSubstr("need a gradient of size 5"));
}

TEST(DataDependent, Conv3D) {
  Attrs attrs = With("padding", std::string("SAME"));
  attrs.Set("strides", std::vector<int64_t>{1, 1, 1, 1, 1});
  EXPECT_THAT(
      Values<float>(RunOp(
          "Conv3D", {Floats({1, 3, 1, 1, 1}, {1, 2, 3}), Floats({3, 1, 1, 1, 1}, {100, 10, 1})},
          attrs)),
      ElementsAre(12, 123, 230));
}

// TensorFlow's answer: with a sigma no overlap drops a box, it only costs score.
TEST(DataDependent, SoftSuppressionInBothTypes) {
  const std::vector<float> boxes = {0, 0, 1, 1, 0, .1f, 1, 1.1f, 0, .6f, 1, 1.6f, 0, 3, 1, 4};
  const std::vector<float> scores = {.9f, .8f, .7f, .6f};
  const auto scalar = [](float value) { return Tensor::Scalar(DType::kFloat32, value); };
  const auto out = RunOp("NonMaxSuppressionV5", {Floats({4, 4}, boxes), Floats({4}, scores),
                                                 Tensor::Scalar(DType::kInt32, int32_t{4}),
                                                 scalar(.3f), scalar(.1f), scalar(.5f)});
  EXPECT_THAT(Values<int32_t>(out), ElementsAre(0, 2, 3, 1));
  EXPECT_THAT(Values<float>(out, 1),
              testing::Pointwise(testing::FloatNear(1e-6f), {.9f, .65758914f, .6f, .36652958f}));
  const auto halves = [](const Shape& shape, const std::vector<float>& values) {
    return Tensor::Vector(DType::kFloat16, std::vector<Half>(values.begin(), values.end()))
        .Reshaped(shape);
  };
  const auto half =
      RunOp("NonMaxSuppressionV5",
            {halves({4, 4}, boxes), halves({4}, scores), Tensor::Scalar(DType::kInt32, int32_t{4}),
             halves({}, {.3f}), halves({}, {.1f}), halves({}, {.5f})});
  EXPECT_THAT(Values<int32_t>(half), ElementsAre(0, 2, 3, 1));
  ASSERT_TRUE(half.ok());
  EXPECT_EQ(half->at(1).dtype(), DType::kFloat16);
  EXPECT_NEAR(half->at(1).as<Half>()[3], .3662f, 1e-3);
}

TEST(Scratch, OfASizeThatOnlyValuesOrEmptyTensorsSayIsWithinTheBudget) {
  Budget budget({.max_value_bytes = 1 << 20, .max_bytes = 1 << 20});
  const BudgetScope scope(&budget);
  const auto run = [](const std::string& op, const std::vector<Tensor>& inputs) {
    return CatchOutOfMemory([&] { return RunOp(op, inputs); }).status().code();
  };
  const auto fill = [&](int64_t rows) {
    return run("SparseFillEmptyRows",
               {Longs({1, 2}, {0, 1}), Floats({1}, {7}), Longs({2}, {rows, 2}), Floats({}, {0})});
  };
  EXPECT_EQ(fill(3), absl::StatusCode::kOk);
  EXPECT_EQ(fill(1 << 22), absl::StatusCode::kResourceExhausted);
  // Without a matrix there is nothing to make room for.
  EXPECT_EQ(run("MatrixInverse", {Floats({0, 2048, 2048}, {})}), absl::StatusCode::kOk);
}

}  // namespace
}  // namespace floe
