// Ops in types other than float32, and at the edges of their meaning. Expected values are
// TensorFlow's.
#include "kernels/cpu/dtypes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>

#include "kernels/cpu/kernel_test_util.h"

namespace floe {
namespace {

using kernels::kDTypeOf;
using testing::ElementsAre;
using Complex = std::complex<double>;
using ComplexF = std::complex<float>;

template <class T>
Tensor Of(const Shape& shape, const std::vector<T>& values) {
  return Tensor::Vector(kDTypeOf<T>, values).Reshaped(shape);
}
template <class T>
Tensor Of(const std::vector<T>& values) {
  return Tensor::Vector(kDTypeOf<T>, values);
}
Tensor Halves(const Shape& shape, const std::vector<float>& values) {
  return Of(shape, std::vector<Half>(values.begin(), values.end()));
}
Tensor Bool(bool value) { return Tensor::Scalar(DType::kBool, value).Reshaped({1}); }
Attrs With(std::initializer_list<std::pair<std::string, AttrValue>> values) {
  Attrs attrs;
  for (const auto& [name, value] : values) attrs.Set(name, value);
  return attrs;
}

template <class T>
std::vector<T> RunOp(const std::string& op, const Attrs& attrs, const std::vector<Tensor>& inputs,
                     int output = 0) {
  const auto out = RunKernel(op, attrs, inputs, {.const_mask = ~uint64_t{0}});
  EXPECT_TRUE(out.ok()) << op << ": " << out.status();
  if (!out.ok()) return {};
  const Tensor& t = out->at(output);
  EXPECT_EQ(t.dtype(), kDTypeOf<T>);
  return std::vector<T>(t.as<T>(), t.as<T>() + t.elements());
}
absl::StatusCode CodeOf(const std::string& op, const Attrs& attrs,
                        const std::vector<Tensor>& inputs) {
  return RunKernel(op, attrs, inputs, {.const_mask = ~uint64_t{0}}).status().code();
}

void ExpectNear(const std::vector<Half>& got, const std::vector<float>& want, float tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], tolerance) << i;
}
template <class T>
void ExpectNear(const std::vector<std::complex<T>>& got, const std::vector<Complex>& want,
                double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_LE(std::abs(Complex(got[i]) - want[i]), tolerance);
}

TEST(Complex, ElementsAndScans) {
  ExpectNear(
      RunOp<ComplexF>("SquaredDifference", {}, {Of<ComplexF>({{1, 2}}), Of<ComplexF>({{3, -1}})}),
      {13}, 1e-6);
  ExpectNear(RunOp<Complex>("Acosh", {}, {Of<Complex>({{.5, .5}})}), {{0.53063753, 1.11851788}},
             1e-7);
  ExpectNear(RunOp<Complex>("Asin", {}, {Of<Complex>({{.5, .5}})}), {{0.45227845, 0.53063753}},
             1e-7);
  const Tensor steps = Of<ComplexF>({{1, 1}, {2, 0}, {0, 1}});
  ExpectNear(RunOp<ComplexF>("Cumsum", With({{"reverse", true}}), {steps, Of<int32_t>({}, {0})}),
             {{3, 2}, {2, 1}, {0, 1}}, 1e-6);
  ExpectNear(RunOp<ComplexF>("Cumprod", {}, {steps, Of<int32_t>({}, {0})}),
             {{1, 1}, {2, 2}, {-2, 2}}, 1e-6);
}

TEST(Complex, PartsHaveTheTypeOfTheirWhole) {
  EXPECT_EQ(CodeOf("ComplexAbs", With({{"Tout", DType::kFloat32}}), {Of<Complex>({1})}),
            absl::StatusCode::kInvalidArgument);
}

TEST(Complex, Matrices) {
  const Tensor x = Of<ComplexF>({2, 2}, {{1, 1}, 2, 0, {1, -2}}),
               y = Of<ComplexF>({2, 2}, {{0, 1}, 2, 3, {1, -1}});
  ExpectNear(RunOp<ComplexF>("BatchMatMul", With({{"adj_x", true}, {"adj_y", true}}), {x, y}),
             {{-1, -1}, {3, -3}, {2, 2}, {5, 3}}, 1e-5);
}

TEST(Complex, LinearAlgebraIsRefusedWithTheWayOut) {
  const Tensor m = Of<Complex>({2, 2}, {{1, 1}, 2, 0, {1, -2}});
  for (const char* op : {"Cholesky", "Eig", "LogMatrixDeterminant", "Lu", "MatrixDeterminant",
                         "MatrixInverse", "Qr", "SelfAdjointEigV2", "Svd"}) {
    const absl::Status status = MakeTestKernel(op, {}, {m}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << op;
    EXPECT_NE(status.message().find("[[re, -im], [im, re]]"), std::string::npos) << status;
  }
  for (const char* op : {"BandedTriangularSolve", "MatrixSolve", "MatrixTriangularSolve"})
    EXPECT_EQ(CodeOf(op, {}, {m, m}), absl::StatusCode::kUnimplemented) << op;
  EXPECT_EQ(CodeOf("MatrixSolveLs", {}, {m, m, Of<double>({}, {1})}),
            absl::StatusCode::kUnimplemented);
}

TEST(Widened, IntegersWrapAndHaveTheLimitsOfTheirOwnType) {
  const Tensor ids = Of<int32_t>({2}, {0, 0}), two = Of<int32_t>({}, {2});
  EXPECT_EQ(RunOp<int8_t>("UnsortedSegmentMax", {}, {Of<int8_t>({2}, {5, -7}), ids, two}),
            (std::vector<int8_t>{5, -128}));
  EXPECT_EQ(RunOp<uint8_t>("UnsortedSegmentMin", {}, {Of<uint8_t>({2}, {5, 200}), ids, two}),
            (std::vector<uint8_t>{5, 255}));
  EXPECT_EQ(RunOp<uint8_t>("UnsortedSegmentSum", {}, {Of<uint8_t>({2}, {250, 10}), ids, two}),
            (std::vector<uint8_t>{4, 0}));
  EXPECT_EQ(RunOp<int32_t>(
                "TensorScatterSub", {},
                {Of<int32_t>({1}, {INT32_MIN}), Of<int32_t>({1, 1}, {0}), Of<int32_t>({1}, {1})}),
            (std::vector<int32_t>{INT32_MAX}));
  EXPECT_EQ(
      RunOp<uint32_t>("TopKV2", {}, {Of<uint32_t>({2}, {3, UINT32_MAX}), Of<int32_t>({}, {1})}),
      (std::vector<uint32_t>{UINT32_MAX}));
}

// Kernels write what inference announced; strings announced as numbers would be written over.
TEST(TypeAttributes, OutputsOfATypeThatTheOpCannotHaveAreRefused) {
  const Tensor x = Of<float>({2}, {1, 2}), axis = Of<int32_t>({}, {0});
  const struct {
    const char *op, *attribute;
    std::vector<Tensor> inputs;
  } cases[] = {
      {"Shape", "out_type", {x}},
      {"ShapeN", "out_type", {x, x}},
      {"Size", "out_type", {x}},
      {"Unique", "out_idx", {x}},
      {"UniqueWithCounts", "out_idx", {x}},
      {"ListDiff", "out_idx", {x, x}},
      {"ArgMax", "output_type", {x, axis}},
      {"TopKV2", "index_type", {x, Of<int32_t>({}, {1})}},
      {"RandomUniform", "dtype", {Of<int32_t>({1}, {3})}},
      {"RandomUniformInt", "Tout", {Of<int32_t>({1}, {3}), axis, Of<int32_t>({}, {9})}},
      {"Multinomial", "output_dtype", {Of<float>({1, 2}, {1, 2}), Of<int32_t>({}, {1})}},
      {"MaxPoolWithArgmax", "Targmax", {Of<float>({1, 1, 1, 1}, {1})}},
  };
  for (const auto& c : cases) {
    for (const DType dtype : {DType::kString, DType::kVariant, DType::kBool}) {
      EXPECT_EQ(CodeOf(c.op, With({{c.attribute, dtype}}), c.inputs),
                absl::StatusCode::kInvalidArgument)
          << c.op << " " << DTypeName(dtype);
    }
  }
}

TEST(MatrixDiag, DiagonalsThatDoNotFillTheMatrixAreRefused) {
  const auto code = [](const Tensor& diagonal, int32_t rows, int32_t cols,
                       const std::vector<int32_t>& k) {
    return CodeOf("MatrixDiagV3", {},
                  {diagonal, Of<int32_t>({static_cast<int64_t>(k.size())}, k),
                   Of<int32_t>({}, {rows}), Of<int32_t>({}, {cols}), Of<float>({}, {0})});
  };
  EXPECT_EQ(code(Of<float>({2}, {1, 2}), 2, 2, {0}), absl::StatusCode::kOk);
  EXPECT_EQ(code(Of<float>({2}, {1, 2}), 9, 9, {0}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(Of<float>({1, 2}, {1, 2}), 2, 2, {0, 1}), absl::StatusCode::kInvalidArgument);
}

TEST(MatrixSetDiag, AScalarIsNoDiagonal) {
  EXPECT_EQ(CodeOf("MatrixSetDiag", {}, {Of<float>({1, 1}, {1}), Of<float>({}, {2})}),
            absl::StatusCode::kInvalidArgument);
}

TEST(FakeQuant, BitsOutOfRangeAreRefused) {
  for (const int64_t bits : {int64_t{0}, int64_t{63}, int64_t{-68719476736}})
    EXPECT_EQ(CodeOf("FakeQuantWithMinMaxArgs", With({{"num_bits", bits}}), {Of<float>({1}, {1})}),
              absl::StatusCode::kInvalidArgument)
        << bits;
}

TEST(MixedTypes, ProductsOfBytes) {
  const Attrs to_int = With({{"Tout", DType::kInt32}});
  EXPECT_THAT(RunOp<int32_t>("BatchMatMul", to_int,
                             {Of<int8_t>({1, 2}, {100, -100}), Of<int8_t>({2, 1}, {127, -128})}),
              ElementsAre(25500));
  EXPECT_THAT(RunOp<int32_t>("BatchMatMul", to_int,
                             {Of<uint8_t>({1, 2}, {200, 255}), Of<int8_t>({2, 1}, {-2, 3})}),
              ElementsAre(365));
  EXPECT_EQ(CodeOf("BatchMatMul", With({{"Tout", DType::kInt8}}),
                   {Of<float>({1, 1}, {1}), Of<float>({1, 1}, {1})}),
            absl::StatusCode::kInvalidArgument);
}

TEST(Halves, ProductsAndCells) {
  EXPECT_EQ(
      RunOp<Half>("MatMul", {}, {Halves({1, 2}, {1.5, 2.25}), Halves({2, 1}, {3, 4.125})})[0].bits,
      Half(13.78125f).bits);
  const std::vector<Tensor> cell = {
      Halves({1, 1}, {.5}),  Halves({1, 1}, {.25}),
      Halves({1, 1}, {-.5}), Halves({2, 4}, {.1f, .2f, .3f, .4f, .5f, .6f, .7f, .8f}),
      Halves({1}, {0}),      Halves({1}, {0}),
      Halves({1}, {0}),      Halves({4}, {0, .1f, .2f, .3f})};
  const float want[] = {.450439453125f,    .1378173828125f, .73095703125f,  .52490234375f,
                        -.09979248046875f, .136962890625f,  .0718994140625f};
  for (int i = 0; i < 7; ++i)
    ExpectNear(RunOp<Half>("LSTMBlockCell", With({{"forget_bias", 1.f}}), cell, i), {want[i]},
               1e-3f);
  ExpectNear(
      RunOp<Half>("LRN", With({{"depth_radius", int64_t{1}}}), {Halves({1, 1, 1, 3}, {1, 2, 3})}),
      {.408203125f, .5166015625f, .8017578125f}, 1e-3f);
}

TEST(CrossEntropy, Float64) {
  const std::vector<Tensor> in = {Of<double>({1, 3}, {1, 2, 3}), Of<double>({1, 3}, {.1, .2, .7})};
  EXPECT_NEAR(RunOp<double>("SoftmaxCrossEntropyWithLogits", {}, in)[0], 0.8076059644443805, 1e-14);
  EXPECT_NEAR(RunOp<double>("SoftmaxCrossEntropyWithLogits", {}, in, 1)[1], 0.04472847105479763,
              1e-14);
}

TEST(Quantize, GridsInBothWidths) {
  EXPECT_THAT(RunOp<float>("FakeQuantWithMinMaxArgs",
                           With({{"min", 1.f}, {"max", 3.f}, {"num_bits", int64_t{4}}}),
                           {Of<float>({1, -3, 2.99f, .06f, 1.4f})}),
              testing::Pointwise(testing::FloatEq(), std::vector<float>{1.0666667222976685f, 0, 2,
                                                                        0, 1.4666666984558105f}));
  const auto grid = RunOp<double>(
      "QuantizeAndDequantizeV2", With({{"range_given", true}, {"num_bits", int64_t{4}}}),
      {Of<double>({-1.3, .4, 2.2}), Of<double>({}, {-2}), Of<double>({}, {3})});
  const double want[] = {-1.2857142857142856, .42857142857142855, 2.142857142857143};
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(grid[i], want[i], 1e-14);
}

TEST(Reduce, MeansOfNarrowIntegersAndRepeatedAxes) {
  EXPECT_THAT(RunOp<uint8_t>("Mean", {}, {Of<uint8_t>({200, 100, 255}), Of<int32_t>({0})}),
              ElementsAre(185));
  EXPECT_THAT(
      RunOp<int8_t>("Mean", {}, {Of<int8_t>(std::vector<int8_t>(200, -100)), Of<int32_t>({0})}),
      ElementsAre(-100));
  EXPECT_EQ(CodeOf("Sum", {}, {Of<float>({1, 2}, {1, 2}), Of<int32_t>({1, -1})}),
            absl::StatusCode::kInvalidArgument);
}

TEST(ArgMax, PassesNanByWhereverItStands) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = Of<float>({2, 3}, {kNan, 1, 2, 1, kNan, 0}), axis = Of<int32_t>({}, {1});
  EXPECT_THAT(RunOp<int64_t>("ArgMax", {}, {x, axis}), ElementsAre(2, 0));
  EXPECT_THAT(RunOp<int64_t>("ArgMin", {}, {x, axis}), ElementsAre(1, 2));
  EXPECT_EQ(CodeOf("ArgMax", With({{"output_type", DType::kInt8}}), {x, axis}),
            absl::StatusCode::kInvalidArgument);
}

TEST(Equal, ShapesThatDoNotBroadcastMayBeUnequal) {
  const Attrs lenient = With({{"incompatible_shape_error", false}});
  const Tensor three = Of<float>({1, 2, 3}), four = Of<float>({1, 2, 3, 4});
  EXPECT_THAT(RunOp<bool>("Equal", lenient, {three, four}), ElementsAre(false));
  EXPECT_THAT(RunOp<bool>("NotEqual", lenient, {three, four}), ElementsAre(true));
  EXPECT_THAT(RunOp<bool>("Equal", lenient, {three, Of<float>({}, {2})}),
              ElementsAre(false, true, false));
  EXPECT_EQ(CodeOf("Equal", {}, {three, four}), absl::StatusCode::kInvalidArgument);
}

TEST(Select, VectorOfConditionsHasOneForEachRow) {
  const Tensor values = Of<float>({2, 1}, {1, 2});
  EXPECT_EQ(CodeOf("Select", {}, {Bool(true), values, values}), absl::StatusCode::kInvalidArgument);
}

TEST(Resize, NothingToResizeIsAnError) {
  for (const char* op :
       {"ResizeNearestNeighbor", "ResizeBilinear", "ResizeBicubic", "ResizeArea"}) {
    const std::vector<Tensor> in = {Of<float>({1, 0, 3, 1}, {}), Of<int32_t>({2, 4})};
    EXPECT_EQ(CodeOf(op, {}, in), absl::StatusCode::kInvalidArgument) << op;
  }
  EXPECT_THAT(RunOp<float>("ResizeArea", With({{"align_corners", true}}),
                           {Of<float>({1, 1, 3, 1}, {1, 2, 3}), Of<int32_t>({1, 2})}),
              ElementsAre(1.5f, 3));
}

TEST(Windows, AStepShortOfOneGivesNothing) {
  const auto pool = [](int64_t size, int64_t stride) {
    return RunKernel("MaxPool",
                     With({{"ksize", std::vector<int64_t>{1, 3, 1, 1}},
                           {"strides", std::vector<int64_t>{1, stride, 1, 1}},
                           {"padding", std::string("VALID")}}),
                     {Tensor::Allocate(DType::kFloat32, {1, size, 2, 1})});
  };
  EXPECT_EQ(pool(2, 1)->at(0).shape(), Shape({1, 0, 2, 1}));
  EXPECT_EQ(pool(1, 2)->at(0).shape(), Shape({1, 0, 2, 1}));
  EXPECT_EQ(pool(1, 1).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(MaxPoolWithArgmax, KeepsANanThatComesFirst) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const Attrs attrs = With({{"ksize", std::vector<int64_t>{1, 1, 2, 1}},
                            {"strides", std::vector<int64_t>{1, 1, 1, 1}},
                            {"padding", std::string("VALID")}});
  const std::vector<Tensor> in = {Of<float>({1, 1, 4, 1}, {1, kNan, 0, 2})};
  const auto best = RunOp<float>("MaxPoolWithArgmax", attrs, in);
  EXPECT_EQ(best[0], 1);
  EXPECT_TRUE(std::isnan(best[1]));
  EXPECT_EQ(best[2], 2);
  EXPECT_THAT(RunOp<int64_t>("MaxPoolWithArgmax", attrs, in, 1), ElementsAre(0, 1, 3));
}

TEST(Random, NarrowTypesStayBelowOne) {
  const auto drawn =
      RunOp<Half>("RandomUniform", With({{"dtype", DType::kFloat16}, {"seed", int64_t{3}}}),
                  {Of<int32_t>({20000})});
  for (Half value : drawn) {
    EXPECT_GE(value, 0);
    EXPECT_LT(value, 1);
  }
}

TEST(Random, SeededPartsAreTensorFlows) {
  const Attrs attrs = With({{"seed", int64_t{1}},
                            {"seed2", int64_t{42}},
                            {"aspect_ratio_range", std::vector<float>{.05f, 3}}});
  const std::vector<Tensor> in = {Of<int32_t>({200, 300, 3}),
                                  Of<float>({1, 2, 4}, {0, 0, .1f, .1f, .9f, .9f, 1, 1}),
                                  Of<float>({}, {.8f})};
  EXPECT_THAT(RunOp<int32_t>("SampleDistortedBoundingBoxV2", attrs, in), ElementsAre(1, 8, 0));
  EXPECT_THAT(RunOp<int32_t>("SampleDistortedBoundingBoxV2", attrs, in, 1),
              ElementsAre(197, 291, -1));
}

TEST(Random, PartsOfAnImageCoverAnObject) {
  const Attrs attrs = With({{"seed", int64_t{5}}, {"area_range", std::vector<float>{.1f, 1}}});
  const std::vector<Tensor> in = {Of<int32_t>({40, 60, 3}),
                                  Of<float>({1, 1, 4}, {.1f, .1f, .6f, .7f}), Of<float>({}, {.5f})};
  const auto made = MakeTestKernel("SampleDistortedBoundingBoxV2", attrs, in);
  ASSERT_TRUE(made.ok()) << made.status();
  bool differ = false;
  int32_t first = -1;
  for (int run = 0; run < 200; ++run) {
    const auto out = RunTestKernel(*(*made)->kernel, in, (*made)->output_types);
    ASSERT_TRUE(out.ok()) << out.status();
    const int32_t *begin = out->at(0).as<int32_t>(), *size = out->at(1).as<int32_t>();
    const float* box = out->at(2).as<float>();
    ASSERT_TRUE(begin[0] >= 0 && begin[1] >= 0 && begin[2] == 0 && size[2] == -1);
    const int32_t bottom = begin[0] + size[0], right = begin[1] + size[1];
    ASSERT_TRUE(size[0] > 0 && size[1] > 0 && bottom <= 40 && right <= 60);
    EXPECT_FLOAT_EQ(box[0], static_cast<float>(begin[0]) / 40);
    EXPECT_FLOAT_EQ(box[3], static_cast<float>(right) / 60);
    // The object is [4, 24) x [6, 42).
    const int common = std::max(0, std::min(bottom, 24) - std::max(begin[0], 4)) *
                       std::max(0, std::min(right, 42) - std::max(begin[1], 6));
    EXPECT_GE(common, 20 * 36 / 2);
    if (run == 0) first = begin[0];
    differ = differ || begin[0] != first;
  }
  EXPECT_TRUE(differ);
  EXPECT_EQ(CodeOf("SampleDistortedBoundingBoxV2", attrs, {in[0], Of<float>({0, 0, 4}, {}), in[2]}),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace floe
