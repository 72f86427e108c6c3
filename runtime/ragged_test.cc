// Ragged tensors. Expected values are TensorFlow 2.21's, but for the row partition types that its
// kernel refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "model/half.h"
#include "runtime/run_op.h"

namespace floe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Tensors = std::vector<Tensor>;
using Kinds = std::vector<std::string>;

Tensor Splits(DType dtype, const std::vector<int64_t>& values) {
  const Shape shape({static_cast<int64_t>(values.size())});
  if (dtype == DType::kInt64) return Longs(shape, values);
  return Ints(shape, std::vector<int32_t>(values.begin(), values.end()));
}
std::vector<int64_t> SplitValues(const absl::StatusOr<Tensors>& outputs, int k) {
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  return outputs.ok() ? *IntegerValues(outputs->at(k).view()) : std::vector<int64_t>();
}
Tensor Vector(const std::vector<float>& values) {
  return Floats(Shape({static_cast<int64_t>(values.size())}), values);
}

class Ragged : public testing::TestWithParam<DType> {
 protected:
  Tensor Of(const std::vector<int64_t>& splits) const { return Splits(GetParam(), splits); }
};
INSTANTIATE_TEST_SUITE_P(SplitTypes, Ragged, testing::Values(DType::kInt32, DType::kInt64));

TEST_P(Ragged, RangeOfEveryType) {
  const Attrs attrs = With("Tsplits", GetParam());
  const auto ints = RunOp(
      "RaggedRange", {Ints({3}, {0, 5, 8}), Ints({3}, {3, 5, 0}), Ints({3}, {1, 1, -3})}, attrs, 2);
  EXPECT_THAT(SplitValues(ints, 0), ElementsAre(0, 3, 3, 6));
  EXPECT_EQ(ints->at(0).dtype(), GetParam());
  EXPECT_THAT(Values<int32_t>(ints, 1), ElementsAre(0, 1, 2, 8, 5, 2));
  const auto scalars =
      RunOp("RaggedRange", {Longs({}, {0}), Longs({}, {7}), Longs({}, {3})}, attrs);
  EXPECT_THAT(SplitValues(scalars, 0), ElementsAre(0, 3));
  EXPECT_THAT(Values<int64_t>(scalars, 1), ElementsAre(0, 3, 6));
  const auto floats =
      RunOp("RaggedRange", {Floats({}, {1}), Floats({2}, {2, 0}), Floats({}, {0.4f})}, attrs);
  EXPECT_THAT(SplitValues(floats, 0), ElementsAre(0, 3, 3));
  EXPECT_THAT(Values<float>(floats, 1), ElementsAre(1, 1.4f, 1.8f));
  const auto none = RunOp("RaggedRange", {Ints({0}, {}), Ints({}, {7}), Ints({}, {3})}, attrs);
  EXPECT_THAT(SplitValues(none, 0), ElementsAre(0));
}

TEST(RaggedRange, BFloat16IsRoundedAtEveryStep) {
  const auto scalar = [](float value) {
    return Tensor::Scalar(DType::kBFloat16, FloatToBFloat16Bits(value));
  };
  const auto out = RunOp("RaggedRange", {scalar(256), scalar(260), scalar(1)});
  // 257 is no bfloat16 and rounds back to 256.
  for (uint16_t bits : Values<uint16_t>(out, 1)) EXPECT_EQ(BFloat16BitsToFloat(bits), 256);
  EXPECT_EQ(out->at(1).elements(), 4);
}

TEST(RaggedRange, Refusals) {
  const auto range = [](int64_t start, int64_t limit, int64_t delta) {
    return Message(
        RunOp("RaggedRange", {Longs({}, {start}), Longs({}, {limit}), Longs({}, {delta})}));
  };
  EXPECT_THAT(range(0, 5, 0), HasSubstr("delta is 0"));
  EXPECT_THAT(range(std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(), 1),
              HasSubstr("too large"));
  EXPECT_THAT(Message(RunOp("RaggedRange",
                            {Floats({}, {0}), Floats({}, {std::numeric_limits<float>::infinity()}),
                             Floats({}, {1})})),
              HasSubstr("too large"));
  EXPECT_THAT(
      Message(RunOp("RaggedRange", {Ints({2}, {0, 1}), Ints({3}, {1, 2, 3}), Ints({}, {1})})),
      HasSubstr("not of one size"));
}

TEST_P(Ragged, GatherOfNestedSplits) {
  const Attrs attrs = WithAll({{"PARAMS_RAGGED_RANK", int64_t{2}},
                               {"OUTPUT_RAGGED_RANK", int64_t{3}},
                               {"Tsplits", GetParam()}});
  const Tensor outer = Of({0, 2, 2, 3}), inner = Of({0, 2, 2, 5});
  const auto out =
      RunOp("RaggedGather", {outer, inner, Vector({1, 2, 3, 4, 5}), Ints({2, 2}, {2, 0, 0, 1})},
            attrs, 4);
  EXPECT_THAT(SplitValues(out, 0), ElementsAre(0, 2, 4));
  EXPECT_THAT(SplitValues(out, 1), ElementsAre(0, 1, 3, 5, 5));
  EXPECT_THAT(SplitValues(out, 2), ElementsAre(0, 3, 5, 5, 7, 7));
  EXPECT_EQ(out->at(2).dtype(), GetParam());
  EXPECT_THAT(Values<float>(out, 3), ElementsAre(3, 4, 5, 1, 2, 1, 2));
}

TEST(RaggedGather, OneRow) {
  const Attrs attrs =
      WithAll({{"PARAMS_RAGGED_RANK", int64_t{2}}, {"OUTPUT_RAGGED_RANK", int64_t{1}}});
  const auto out = RunOp(
      "RaggedGather",
      {Longs({4}, {0, 2, 2, 3}), Longs({4}, {0, 1, 2, 5}), Vector({1, 2, 3, 4, 5}), Ints({}, {0})},
      attrs, 2);
  EXPECT_THAT(SplitValues(out, 0), ElementsAre(0, 1, 2));
  EXPECT_THAT(Values<float>(out, 1), ElementsAre(1, 2));
}

TEST(RaggedGather, StringsNothingAndWrongIndices) {
  const Attrs attrs =
      WithAll({{"PARAMS_RAGGED_RANK", int64_t{1}}, {"OUTPUT_RAGGED_RANK", int64_t{1}}});
  const Tensor splits = Longs({4}, {0, 2, 2, 3});
  const auto strings =
      RunOp("RaggedGather", {splits, Strings({"a", "b", "c"}), Longs({2}, {2, 0})}, attrs, 2);
  EXPECT_THAT(Values<std::string>(strings, 1), ElementsAre("c", "a", "b"));
  const auto none = RunOp("RaggedGather", {splits, Vector({1, 2, 3}), Ints({0}, {})}, attrs, 2);
  EXPECT_THAT(SplitValues(none, 0), ElementsAre(0));
  EXPECT_THAT(Values<float>(none, 1), IsEmpty());
  for (const int wrong : {-1, 3}) {
    EXPECT_THAT(
        Message(RunOp("RaggedGather", {splits, Vector({1, 2, 3}), Ints({1}, {wrong})}, attrs, 2)),
        HasSubstr("is not in [0, 3)"));
  }
  EXPECT_THAT(Message(RunOp("RaggedGather", {splits, Vector({1, 2}), Ints({1}, {0})}, attrs, 2)),
              HasSubstr("row splits end with 3"));
  EXPECT_THAT(Message(RunOp("RaggedGather", {Longs({3}, {0, 3, 2}), Vector({1, 2}), Ints({1}, {0})},
                            attrs, 2)),
              HasSubstr("fall from 3 to 2"));
}

absl::StatusOr<Tensors> ToTensor(const Tensor& shape, const Tensor& values, const Tensor& filler,
                                 const Tensors& partitions, const Kinds& kinds) {
  Tensors inputs = {shape, values, filler};
  inputs.insert(inputs.end(), partitions.begin(), partitions.end());
  return RunOp("RaggedTensorToTensor", inputs, With("row_partition_types", kinds));
}

TEST_P(Ragged, ToTensorByEveryPartitionType) {
  const Tensor values = Vector({1, 2, 3, 4, 5}), filler = Floats({}, {-1});
  const auto expect = [&](const Tensors& partitions, const Kinds& kinds) {
    const auto out = ToTensor(Of({-1, -1}), values, filler, partitions, kinds);
    EXPECT_THAT(Values<float>(out), ElementsAre(1, 2, -1, -1, -1, -1, 3, 4, 5)) << kinds[0];
    if (out.ok()) {
      EXPECT_EQ(out->at(0).shape(), Shape({3, 3}));
    }
  };
  expect({Of({0, 2, 2, 5})}, {"ROW_SPLITS"});
  expect({Of({3}).Reshaped({}), Of({0, 0, 2, 2, 2})}, {"FIRST_DIM_SIZE", "VALUE_ROWIDS"});
  expect({Of({2, 0, 3})}, {"ROW_LENGTHS"});
  expect({Of({2, 2, 5})}, {"ROW_LIMITS"});
  expect({Of({0, 2, 2})}, {"ROW_STARTS"});
}

TEST(RaggedToTensor, ShapesCutAndExtend) {
  const Tensor values = Vector({1, 2, 3, 4, 5}), filler = Floats({}, {0});
  const Tensors splits = {Longs({4}, {0, 2, 2, 5})};
  const auto run = [&](const Tensor& shape) {
    return ToTensor(shape, values, filler, splits, {"ROW_SPLITS"});
  };
  EXPECT_THAT(Values<float>(run(Ints({2}, {-1, 1}))), ElementsAre(1, 0, 3));
  EXPECT_THAT(Values<float>(run(Ints({2}, {1, 3}))), ElementsAre(1, 2, 0));
  EXPECT_THAT(Values<float>(run(Longs({2}, {4, 1}))), ElementsAre(1, 0, 3, 0));
  EXPECT_EQ(run(Ints({}, {-1}))->at(0).shape(), Shape({3, 3}));
  EXPECT_EQ(run(Ints({2}, {0, -1}))->at(0).shape(), Shape({0, 3}));
  EXPECT_THAT(Message(run(Ints({}, {3}))), HasSubstr("scalar 3"));
  EXPECT_THAT(Message(run(Ints({3}, {1, 2, 3}))), HasSubstr("must be equal"));
}

TEST(RaggedToTensor, DefaultsBroadcastToTheElement) {
  const Tensor values = Floats({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const auto run = [&](const Tensor& filler) {
    return ToTensor(Ints({}, {-1}), values, filler, {Longs({3}, {0, 2, 2})}, {"ROW_SPLITS"});
  };
  EXPECT_THAT(Values<float>(run(Floats({2}, {-1, -2}))),
              ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, -1, -2, -1, -2, -1, -2, -1, -2));
  EXPECT_THAT(Values<float>(run(Floats({2, 1}, {-1, -2}))),
              ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, -1, -1, -2, -2, -1, -1, -2, -2));
  EXPECT_THAT(Message(run(Floats({3}, {1, 2, 3}))), HasSubstr("does not broadcast"));
}

TEST(RaggedToTensor, NestedAndStrings) {
  const auto out = ToTensor(Longs({3}, {-1, -1, 2}), Strings({"a", "b", "c", "d", "e"}),
                            Strings({"-"}).Reshaped({}),
                            {Longs({}, {3}), Longs({3}, {0, 0, 2}), Longs({4}, {0, 2, 2, 5})},
                            {"FIRST_DIM_SIZE", "VALUE_ROWIDS", "ROW_SPLITS"});
  EXPECT_THAT(Values<std::string>(out),
              ElementsAre("a", "b", "-", "-", "-", "-", "-", "-", "c", "d", "-", "-"));
}

TEST(RaggedToTensor, PartitionsThatDoNotFit) {
  const Tensor values = Vector({1, 2, 3}), filler = Floats({}, {0}), any = Ints({}, {-1});
  const auto run = [&](const Tensors& partitions, const Kinds& kinds) {
    return Message(ToTensor(any, values, filler, partitions, kinds));
  };
  EXPECT_THAT(run({Longs({2}, {0, 2})}, {"ROW_SPLITS"}), HasSubstr("describe 2 values"));
  EXPECT_THAT(run({Longs({2}, {1, 3})}, {"ROW_SPLITS"}), HasSubstr("begins with 0"));
  EXPECT_THAT(run({Longs({3}, {0, 0, 0})}, {"VALUE_ROWIDS"}), HasSubstr("number of rows"));
  EXPECT_THAT(run({Longs({}, {2}), Longs({3}, {0, 1, 2})}, {"FIRST_DIM_SIZE", "VALUE_ROWIDS"}),
              HasSubstr("not in [0, 2)"));
  EXPECT_THAT(run({Longs({}, {int64_t{1} << 60}), Longs({3}, {0, 1, 2})},
                  {"FIRST_DIM_SIZE", "VALUE_ROWIDS"}),
              HasSubstr("rows"));
  EXPECT_THAT(run({Longs({2}, {-1, 4})}, {"ROW_LENGTHS"}), HasSubstr("length -1"));
  EXPECT_THAT(run({Longs({2}, {2, 1})}, {"ROW_LIMITS"}), HasSubstr("follow each other"));
  EXPECT_THAT(run({Longs({2}, {2, 1})}, {"ROW_NOTHING"}), HasSubstr("unknown type"));
}

// To variants and back.
absl::StatusOr<Tensors> Through(const Tensors& splits, const Tensor& values, bool batched,
                                int64_t input_rank, int outputs) {
  const DType type = splits.empty() ? DType::kInt64 : splits[0].dtype();
  Tensors inputs = splits;
  inputs.push_back(values);
  FLOE_ASSIGN_OR_RETURN(const Tensors handles,
                        RunOp("RaggedTensorToVariant", inputs,
                              WithAll({{"RAGGED_RANK", static_cast<int64_t>(splits.size())},
                                       {"batched_input", batched},
                                       {"Tsplits", type}})));
  EXPECT_EQ(handles[0].shape().rank(), batched ? 1 : 0);
  return RunOp("RaggedTensorFromVariant", handles,
               WithAll({{"input_ragged_rank", input_rank},
                        {"output_ragged_rank", static_cast<int64_t>(outputs) - 1},
                        {"Tvalues", values.dtype()},
                        {"Tsplits", type}}),
               outputs);
}

TEST_P(Ragged, ThroughVariants) {
  const Tensors splits = {Of({0, 2, 2, 3}), Of({0, 2, 2, 5})};
  const Tensor values = Vector({1, 2, 3, 4, 5});
  for (const bool batched : {false, true}) {
    for (const int64_t rank : {-1, batched ? 1 : 2}) {
      const auto out = Through(splits, values, batched, rank, 3);
      EXPECT_THAT(SplitValues(out, 0), ElementsAre(0, 2, 2, 3));
      EXPECT_THAT(SplitValues(out, 1), ElementsAre(0, 2, 2, 5));
      EXPECT_EQ(out->at(1).dtype(), GetParam());
      EXPECT_THAT(Values<float>(out, 2), ElementsAre(1, 2, 3, 4, 5));
    }
  }
}

TEST(RaggedVariant, DenseRowsAndEmptyBatches) {
  const auto rows = Through({}, Floats({3, 2}, {1, 2, 3, 4, 5, 6}), true, 0, 2);
  EXPECT_THAT(Values<int64_t>(rows, 0), ElementsAre(0, 2, 4, 6));
  EXPECT_THAT(Values<float>(rows, 1), ElementsAre(1, 2, 3, 4, 5, 6));
  const auto empty = Through({Longs({1}, {0})}, Floats({0, 2}, {}), true, -1, 2);
  EXPECT_THAT(Values<int64_t>(empty, 0), ElementsAre(0));
  EXPECT_THAT(Values<float>(empty, 1), IsEmpty());
  const auto strings = Through({Longs({3}, {0, 1, 3})}, Strings({"x", "y", "z"}), true, 0, 2);
  EXPECT_THAT(Values<std::string>(strings, 1), ElementsAre("x", "y", "z"));
}

TEST(RaggedVariant, Refusals) {
  const Tensors splits = {Longs({3}, {0, 1, 3})};
  const Tensor values = Vector({1, 2, 3});
  EXPECT_THAT(Message(Through(splits, values, false, 2, 3)), HasSubstr("has ragged rank 1"));
  EXPECT_THAT(Message(Through(splits, values, true, 3, 3)), HasSubstr("does not give that"));
  EXPECT_THAT(Message(Through({Longs({2}, {0, 2})}, values, true, 0, 2)),
              HasSubstr("row splits end with 2"));
  const Attrs attrs = WithAll({{"input_ragged_rank", int64_t{1}},
                               {"output_ragged_rank", int64_t{1}},
                               {"Tvalues", DType::kFloat32}});
  EXPECT_THAT(
      Message(RunOp("RaggedTensorFromVariant", {Tensor::Allocate(DType::kVariant, {})}, attrs, 2)),
      HasSubstr("not the handle of a ragged tensor"));
}

TEST_P(Ragged, ToSparse) {
  const auto out =
      RunOp("RaggedTensorToSparse", {Of({0, 2, 2, 3}), Of({0, 1, 1, 3}), Floats({3, 1}, {7, 8, 9})},
            WithAll({{"RAGGED_RANK", int64_t{2}}, {"Tsplits", GetParam()}}));
  EXPECT_THAT(Values<int64_t>(out, 0), ElementsAre(0, 0, 0, 0, 2, 0, 0, 0, 2, 0, 1, 0));
  EXPECT_EQ(out->at(0).shape(), Shape({3, 4}));
  EXPECT_THAT(Values<float>(out, 1), ElementsAre(7, 8, 9));
  EXPECT_THAT(Values<int64_t>(out, 2), ElementsAre(3, 2, 2, 1));
}

}  // namespace
}  // namespace floe
