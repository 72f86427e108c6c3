// Ops that pick, place and combine elements: index types, element types and edges that TensorFlow's
// CPU kernels take. Expected values are TensorFlow 2.21's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>

#include "model/half.h"
#include "runtime/run_op.h"

namespace floe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

Tensor Shorts(const Shape& shape, const std::vector<int16_t>& values) {
  return TensorOf(DType::kInt16, shape, values);
}
Tensor Halves(const Shape& shape, const std::vector<float>& values) {
  std::vector<uint16_t> bits;
  bits.reserve(values.size());
  for (const float v : values) bits.push_back(FloatToHalfBits(v));
  return TensorOf(DType::kFloat16, shape, bits);
}
Tensor BFloats(const Shape& shape, const std::vector<float>& values) {
  std::vector<uint16_t> bits;
  bits.reserve(values.size());
  for (const float v : values) bits.push_back(FloatToBFloat16Bits(v));
  return TensorOf(DType::kBFloat16, shape, bits);
}
std::vector<float> HalfValues(const absl::StatusOr<std::vector<Tensor>>& outputs) {
  std::vector<float> values;
  const std::vector<uint16_t> halves = Values<uint16_t>(outputs);
  values.reserve(halves.size());
  for (const uint16_t bits : halves) values.push_back(HalfBitsToFloat(bits));
  return values;
}
using Complex = std::complex<float>;
Tensor Complexes(const Shape& shape, const std::vector<Complex>& values) {
  return TensorOf(DType::kComplex64, shape, values);
}
Tensor Bools(const Shape& shape, const std::vector<uint8_t>& values) {
  return TensorOf(DType::kBool, shape, values);
}

TEST(IndexOps, IndicesOfInt16) {
  const Tensor data = Floats({2, 2}, {1, 2, 3, 4});
  EXPECT_THAT(Values<float>(RunOp("GatherV2", {data, Shorts({1}, {1}), Ints({}, {0})})),
              ElementsAre(3, 4));
  EXPECT_THAT(Values<float>(RunOp("GatherNd", {data, Shorts({1, 2}, {1, 0})})), ElementsAre(3));
  EXPECT_THAT(Values<float>(RunOp("StridedSlice",
                                  {data, Shorts({1}, {-1}), Shorts({1}, {2}), Shorts({1}, {1})})),
              ElementsAre(3, 4));
  EXPECT_THAT(Values<int64_t>(
                  RunOp("ArgMax", {data, Shorts({}, {-1})}, With("output_type", DType::kInt64))),
              ElementsAre(1, 1));
}

TEST(IndexOps, TopKOfInt16) {
  const auto out = RunOp("TopKV2", {Floats({2, 3}, {1, 3, 2, 6, 4, 5}), Shorts({}, {2})},
                         With("index_type", DType::kInt16));
  EXPECT_THAT(Values<float>(out), ElementsAre(3, 2, 6, 5));
  EXPECT_THAT(Values<int16_t>(out, 1), ElementsAre(1, 2, 0, 2));
}

TEST(IndexOps, GatherNdMayIgnoreBadPlaces) {
  const std::vector<Tensor> inputs = {Floats({2, 2}, {1, 2, 3, 4}), Ints({3, 1}, {1, 7, -1})};
  EXPECT_THAT(
      Values<float>(RunOp("GatherNd", inputs, With("bad_indices_policy", std::string("IGNORE")))),
      ElementsAre(3, 4, 0, 0, 0, 0));
  EXPECT_THAT(Message(RunOp("GatherNd", inputs)), HasSubstr("index [7] is outside"));
}

TEST(IndexOps, ScatterNdOfEveryKind) {
  const Tensor twice = Ints({3, 1}, {1, 1, 0}), shape = Ints({1}, {3});
  EXPECT_THAT(Values<bool>(RunOp("ScatterNd", {twice, Bools({3}, {1, 1, 0}), shape})),
              ElementsAre(false, true, false));
  EXPECT_THAT(Values<std::string>(RunOp("ScatterNd", {twice, Strings({"a", "b", "c"}), shape})),
              ElementsAre("c", "ab", ""));
  EXPECT_THAT(
      Values<Complex>(RunOp("TensorScatterSub", {Complexes({2}, {{1, 1}, {2, 2}}),
                                                 Ints({1, 1}, {1}), Complexes({1}, {{5, -1}})})),
      ElementsAre(Complex(1, 1), Complex(-3, 3)));
}

TEST(IndexOps, UpdatesMustFitTheirPlaces) {
  const Tensor data = Floats({3, 2}, {1, 2, 3, 4, 5, 6}), one = Ints({1, 1}, {1});
  for (const Tensor& updates :
       {Floats({1, 3}, {1, 2, 3}), Floats({2, 2}, {1, 2, 3, 4}), Floats({}, {1})}) {
    for (const char* op : {"TensorScatterUpdate", "TensorScatterAdd", "TensorScatterMax"})
      EXPECT_THAT(Message(RunOp(op, {data, one, updates})), HasSubstr("do not fit [3,2]")) << op;
    EXPECT_THAT(Message(RunOp("ScatterNd", {one, updates, Ints({2}, {3, 2})})),
                HasSubstr("do not fit [3,2]"));
  }
}

TEST(IndexOps, SparseToDenseChecksTheOrder) {
  const auto run = [](const std::vector<int32_t>& indices, bool check) {
    return RunOp("SparseToDense",
                 {Ints({2}, indices), Ints({1}, {3}), Floats({2}, {5, 6}), Floats({}, {0})},
                 With("validate_indices", check));
  };
  EXPECT_THAT(Values<float>(run({0, 2}, true)), ElementsAre(5, 0, 6));
  EXPECT_THAT(Values<float>(run({2, 0}, false)), ElementsAre(6, 0, 5));
  EXPECT_THAT(Message(run({2, 0}, true)), HasSubstr("order"));
  EXPECT_THAT(Message(run({1, 1}, true)), HasSubstr("order"));
}

TEST(IndexOps, ArgMaxNeverChoosesNan) {
  const Tensor x = Floats({3, 3}, {kNan, 5, kNan, kNan, kNan, kNan, 1, kNan, -kInf});
  const Attrs attrs = With("output_type", DType::kInt64);
  EXPECT_THAT(Values<int64_t>(RunOp("ArgMax", {x, Ints({}, {1})}, attrs)), ElementsAre(1, 0, 0));
  EXPECT_THAT(Values<int64_t>(RunOp("ArgMin", {x, Ints({}, {1})}, attrs)), ElementsAre(1, 0, 2));
}

TEST(IndexOps, SegmentsOfSeveralRowsLeaveNanOutOfWholeVectors) {
  // Eight columns make a vector of TensorFlow's; in fewer a NaN is replaced by what comes next.
  const Tensor ids = Ints({4}, {0, 0, 1, 1});
  std::vector<float> wide;
  for (float value : {1.0f, kNan, kNan, kNan}) wide.insert(wide.end(), 8, value);
  for (const auto& [op, none] : {std::pair{"SegmentMax", -kInf}, {"SegmentMin", kInf}}) {
    std::vector<float> want(8, 1.0f);
    want.resize(16, none);
    EXPECT_EQ(Values<float>(RunOp(op, {Floats({4, 8}, wide), ids})), want);
    const auto one = Values<float>(RunOp(op, {Floats({4}, {kNan, 1, 1, kNan}), ids}));
    ASSERT_EQ(one.size(), 2u);
    EXPECT_EQ(one[0], 1);
    EXPECT_TRUE(std::isnan(one[1]));
  }
  EXPECT_TRUE(
      std::isnan(Values<float>(RunOp("SegmentMax", {Floats({1}, {kNan}), Ints({1}, {0})}))[0]));
}

TEST(IndexOps, SegmentsOfComplexNumbers) {
  const std::vector<Tensor> inputs = {Complexes({3}, {{1, 2}, {3, 4}, {0, 1}}),
                                      Ints({3}, {0, 0, 2})};
  EXPECT_THAT(Values<Complex>(RunOp("SegmentSum", inputs)),
              ElementsAre(Complex(4, 6), Complex(0, 0), Complex(0, 1)));
  EXPECT_THAT(Values<Complex>(RunOp("SegmentMean", inputs)),
              ElementsAre(Complex(2, 3), Complex(0, 0), Complex(0, 1)));
  EXPECT_THAT(Values<Complex>(RunOp("SegmentProd", inputs)),
              ElementsAre(Complex(-5, 10), Complex(1, 0), Complex(0, 1)));
}

TEST(IndexOps, EmptySegmentsHoldTheTypesLimit) {
  const std::vector<Tensor> half = {Halves({1}, {3}), Ints({1}, {1}), Ints({}, {2})};
  EXPECT_THAT(HalfValues(RunOp("UnsortedSegmentMax", half)), ElementsAre(-65504, 3));
  EXPECT_THAT(HalfValues(RunOp("UnsortedSegmentMin", half)), ElementsAre(65504, 3));
  const auto bfloat =
      RunOp("UnsortedSegmentMax", {BFloats({1}, {3}), Ints({1}, {1}), Ints({}, {2})});
  EXPECT_THAT(Values<uint16_t>(bfloat), ElementsAre(0xff7f, FloatToBFloat16Bits(3)));
  const auto bytes = RunOp("UnsortedSegmentMax", {TensorOf<uint8_t>(DType::kUInt8, {1}, {3}),
                                                  Ints({1}, {1}), Ints({}, {2})});
  EXPECT_THAT(Values<uint8_t>(bytes), ElementsAre(0, 3));
}

TEST(IndexOps, SegmentIdsMustBeAPrefix) {
  for (const char* op : {"UnsortedSegmentSum", "UnsortedSegmentMin"}) {
    EXPECT_THAT(
        Message(RunOp(op, {Floats({3, 2}, {1, 2, 3, 4, 5, 6}), Ints({2}, {0, 1}), Ints({}, {2})})),
        HasSubstr("no prefix"));
  }
}

TEST(IndexOps, UniqueOfSixteenBits) {
  const auto half = RunOp("Unique", {Halves({4}, {1.5f, 2, 1.5f, -0.0f})});
  EXPECT_THAT(HalfValues(half), ElementsAre(1.5f, 2, -0.0f));
  EXPECT_THAT(Values<int32_t>(half, 1), ElementsAre(0, 1, 0, 2));
  const auto diff = RunOp("ListDiff", {BFloats({3}, {1, 2, 3}), BFloats({1}, {2})});
  EXPECT_THAT(Values<int32_t>(diff, 1), ElementsAre(0, 2));
}

TEST(IndexOps, RangesOfSixteenBitsAndWithoutEnd) {
  EXPECT_THAT(HalfValues(RunOp("Range", {Halves({}, {1}), Halves({}, {2}), Halves({}, {0.5f})})),
              ElementsAre(1, 1.5f));
  const auto bfloat = RunOp("Range", {BFloats({}, {256}), BFloats({}, {259}), BFloats({}, {1})});
  for (const uint16_t bits : Values<uint16_t>(bfloat)) EXPECT_EQ(BFloat16BitsToFloat(bits), 256);
  for (const float limit : {kInf, kNan}) {
    EXPECT_THAT(Message(RunOp("Range", {Floats({}, {0}), Floats({}, {limit}), Floats({}, {1})})),
                HasSubstr("elements"));
  }
  using Limits = std::numeric_limits<int64_t>;
  const int64_t low = -Limits::max();
  EXPECT_THAT(
      Message(RunOp("Range", {Longs({}, {low}), Longs({}, {Limits::max()}), Longs({}, {1})})),
      HasSubstr("a range of 18446744073709551614 elements"));
  EXPECT_THAT(Values<int64_t>(
                  RunOp("Range", {Longs({}, {Limits::max()}), Longs({}, {low}), Longs({}, {low})})),
              ElementsAre(Limits::max(), 0));
}

TEST(IndexOps, OpenDimsOfEmptyShapes) {
  const auto reshaped = [](const Shape& from, const std::vector<int32_t>& to) {
    const auto out = RunOp("Reshape", {Floats(from, {}), Ints({static_cast<int>(to.size())}, to)});
    return out.ok() ? out->at(0).shape().ToString() : Message(out);
  };
  EXPECT_EQ(reshaped({0, 3}, {-1, 0}), "[3,0]");
  EXPECT_EQ(reshaped({0, 3}, {3, -1}), "[3,0]");
  EXPECT_THAT(reshaped({0, 3}, {-1, 0, 2}), HasSubstr("cannot reshape"));
}

TEST(IndexOps, SumsOfComplexNumbersAlongAnAxis) {
  const std::vector<Tensor> inputs = {Complexes({3}, {{1, 1}, {0, 2}, {3, 0}}), Ints({}, {0})};
  EXPECT_THAT(Values<Complex>(RunOp("Cumsum", inputs)),
              ElementsAre(Complex(1, 1), Complex(1, 3), Complex(4, 3)));
  EXPECT_THAT(Values<Complex>(RunOp("Cumprod", inputs)),
              ElementsAre(Complex(1, 1), Complex(-2, 2), Complex(-6, 6)));
}

}  // namespace
}  // namespace floe
