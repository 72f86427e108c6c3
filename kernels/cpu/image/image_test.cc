// Images, spectra, quantisation and cells against what TensorFlow 2.21 computes.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>

#include "kernels/cpu/kernel_test_util.h"

namespace floe {
namespace {

Tensor Ints(const std::vector<int32_t>& values) { return Tensor::Vector(DType::kInt32, values); }

using Values = std::vector<float>;

void ExpectClose(const absl::StatusOr<std::vector<Tensor>>& out, const Shape& shape,
                 const Values& want, size_t k = 0, float slack = 2e-6f) {
  ASSERT_TRUE(out.ok()) << out.status();
  ASSERT_EQ((*out)[k].shape(), shape);
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_NEAR((*out)[k].as<float>()[i], want[i], slack * (1 + std::abs(want[i])))
        << "output " << k << " element " << i;
  }
}

// i * i / 7 for i in [0, 12).
Tensor Picture() {
  Values x(12);
  for (int i = 0; i < 12; ++i) x[i] = static_cast<float>(i * i) / 7;
  return FloatTensor({1, 3, 4, 1}, x);
}

absl::StatusOr<std::vector<Tensor>> Resize(const char* op, bool align, bool half) {
  Attrs attrs;
  attrs.Set("align_corners", align);
  attrs.Set("half_pixel_centers", half);
  return RunKernel(op, attrs, {Picture(), Ints({5, 3})}, {.const_mask = 2});
}

TEST(Resize, EveryMethodAndPlacement) {
  const Shape s = {1, 5, 3, 1};
  ExpectClose(
      Resize("ResizeBilinear", false, false), s,
      {0, 0.285714328f, 1.0476191f, 1.37142873f, 2.57142878f, 4.24761915f, 3.65714335f, 5.77142906f,
       8.3619051f, 7.77143002f, 10.8000011f, 14.3047628f, 9.14285755f, 12.4761906f, 16.2857151f});
  ExpectClose(Resize("ResizeBilinear", true, false), s,
              {0, 0.357142866f, 1.28571427f, 1.14285719f, 2.35714293f, 4.14285707f, 2.28571439f,
               4.35714293f, 7, 5.71428585f, 8.6428566f, 12.1428576f, 9.14285755f, 12.9285717f,
               17.2857151f});
  ExpectClose(Resize("ResizeBilinear", false, true), s,
              {0.023809528f, 0.357142866f, 1.16666675f, 1.0142858f, 1.95714307f, 3.37619066f, 2.5f,
               4.35714293f, 6.69047642f, 6.72857285f, 9.50000095f, 12.7476215f, 9.54761982f,
               12.9285717f, 16.7857151f});
  ExpectClose(
      Resize("ResizeNearestNeighbor", false, false), s,
      {0, 0.142857149f, 0.571428597f, 0, 0.142857149f, 0.571428597f, 2.28571439f, 3.57142854f,
       5.14285707f, 2.28571439f, 3.57142854f, 5.14285707f, 9.14285755f, 11.5714283f, 14.2857141f});
  ExpectClose(Resize("ResizeNearestNeighbor", true, false), s,
              {0, 0.571428597f, 1.28571427f, 2.28571439f, 5.14285707f, 7, 2.28571439f, 5.14285707f,
               7, 9.14285755f, 14.2857141f, 17.2857151f, 9.14285755f, 14.2857141f, 17.2857151f});
  ExpectClose(Resize("ResizeNearestNeighbor", false, true), s,
              {0, 0.571428597f, 1.28571427f, 0, 0.571428597f, 1.28571427f, 2.28571439f, 5.14285707f,
               7, 9.14285755f, 14.2857141f, 17.2857151f, 9.14285755f, 14.2857141f, 17.2857151f});
  ExpectClose(Resize("ResizeBicubic", false, false), s,
              {0, 0.253875285f, 1.08487308f, 0.657536209f, 1.69996464f, 3.31998372f, 3.71343327f,
               5.95941687f, 8.78370667f, 7.98962593f, 11.1369095f, 14.8630381f, 9.88318729f,
               13.4377708f, 17.5714397f});
  ExpectClose(Resize("ResizeBicubic", true, false), s,
              {0, 0.303571463f, 1.28571427f, 0.5f, 1.5f, 3.17857122f, 2.28571439f, 4.30357122f, 7,
               5.9285717f, 8.9642849f, 12.6785717f, 9.14285755f, 12.874999f, 17.2857151f});
  ExpectClose(Resize("ResizeBicubic", false, true), s,
              {-0.169938177f, 0.019326333f, 0.78627038f, 0.542977989f, 1.34191966f, 2.71854043f,
               2.4151113f, 4.3214283f, 6.80542564f, 7.04823208f, 10.061924f, 13.6532984f,
               9.91684818f, 13.5402174f, 17.7412701f});
  ExpectClose(RunKernel("ResizeArea", {}, {Picture(), Ints({2, 3})}, {.const_mask = 2}),
              {1, 2, 3, 1},
              {0.892857194f, 1.69047618f, 2.91666651f, 7.36904812f, 10.0714283f, 13.2023811f});
}

TEST(CropAndResize, SamplesBoxes) {
  Attrs attrs;
  attrs.Set("extrapolation_value", -1.0f);
  const Tensor boxes = FloatTensor({2, 4}, {0, 0, 1, 1, 0.2f, 0.1f, 0.7f, 1.2f});
  ExpectClose(RunKernel("CropAndResize", attrs, {Picture(), boxes, Ints({0, 0}), Ints({2, 2})},
                        {.const_mask = 8}),
              {2, 2, 2, 1},
              {0, 1.28571427f, 9.14285755f, 17.2857151f, 1.09428585f, -1, 5.55142832f, -1});
  EXPECT_FALSE(RunKernel("CropAndResize", attrs, {Picture(), boxes, Ints({0, 1}), Ints({2, 2})},
                         {.const_mask = 8})
                   .ok());
}

TEST(Resize, ImagesOfNothingStayOfNothing) {
  const auto image = [](const Shape& shape) { return Tensor::Allocate(DType::kFloat32, shape); };
  for (const char* op :
       {"ResizeBilinear", "ResizeBicubic", "ResizeArea", "ResizeNearestNeighbor"}) {
    for (const Shape& shape : {Shape{0, 3, 4, 2}, Shape{2, 3, 4, 0}}) {
      const auto out = RunKernel(op, {}, {image(shape), Ints({5, 2})}, {.const_mask = 2});
      EXPECT_TRUE(out.ok()) << op << out.status();
    }
  }
  const Tensor boxes = FloatTensor({1, 4}, {0, 0, 1, 1});
  EXPECT_TRUE(RunKernel("CropAndResize", {}, {image({1, 3, 4, 0}), boxes, Ints({0}), Ints({2, 2})},
                        {.const_mask = 8})
                  .ok());
}

TEST(Colours, HueSaturationContrast) {
  const Tensor rgb =
      FloatTensor({1, 2, 2, 3}, {.9f, .2f, .1f, .3f, .8f, .5f, .1f, .2f, .7f, .5f, .5f, .5f});
  ExpectClose(RunKernel("AdjustHue", {}, {rgb, FloatTensor({}, {0.3f})}), {1, 2, 2, 3},
              {0.159999937f, 0.899999976f, 0.1f, 0.400000155f, 0.3f, 0.8f, 0.7f, 0.1f, 0.320000052f,
               0.5f, 0.5f, 0.5f});
  ExpectClose(RunKernel("AdjustSaturation", {}, {rgb, FloatTensor({}, {0.5f})}), {1, 2, 2, 3},
              {0.9f, 0.55f, 0.5f, 0.55f, 0.8f, 0.65f, 0.4f, 0.449999958f, 0.7f, 0.5f, 0.5f, 0.5f});
  ExpectClose(
      RunKernel("AdjustContrastv2", {}, {rgb, FloatTensor({}, {2})}), {1, 2, 2, 3},
      {1.35f, -0.025f, -0.25f, 0.15f, 1.175f, 0.55f, -0.25f, -0.025f, 0.95f, 0.55f, 0.575f, 0.55f});
}

TEST(Lrn, DividesByNeighbours) {
  Attrs attrs;
  attrs.Set("depth_radius", int64_t{1});
  attrs.Set("alpha", 0.5f);
  attrs.Set("beta", 0.75f);
  ExpectClose(RunKernel("LRN", attrs, {FloatTensor({1, 1, 1, 5}, {0, 1, 2, 3, 4})}), {1, 1, 1, 5},
              {0, 0.390794963f, 0.420448214f, 0.384036481f, 0.567949414f});
}

// Several blocks of pixels, and windows that reach beyond the channels.
TEST(Lrn, EveryRadiusAndExponent) {
  constexpr int64_t kDepth = 33;
  const Tensor x = RandomTensor({2, 17, 19, kDepth}, 1);
  for (const int64_t radius : {0, 2, 100}) {
    for (const float beta : {0.5f, 0.75f, 1.0f, 0.6f}) {
      Attrs attrs;
      attrs.Set("depth_radius", radius);
      attrs.Set("bias", 1.5f);
      attrs.Set("beta", beta);
      const auto out = RunKernel("LRN", attrs, {x}, {.threads = 2});
      ASSERT_TRUE(out.ok()) << out.status();
      for (int64_t i = 0; i < x.elements(); ++i) {
        double sum = 0;
        for (int64_t c = 0; c < kDepth; ++c) {
          const double value = x.as<float>()[i - i % kDepth + c];
          if (std::abs(c - i % kDepth) <= radius) sum += value * value;
        }
        const double want = x.as<float>()[i] * std::pow(1.5 + sum, -static_cast<double>(beta));
        ASSERT_NEAR((*out)[0].as<float>()[i], want, 1e-6) << radius << " " << beta << " " << i;
      }
    }
  }
}

TEST(Quantize, RoundsToTheGrid) {
  const Tensor x = FloatTensor({6}, {-1.3f, -0.5f, 0, 0.3f, 0.77f, 1.9f}),
               zero = FloatTensor({}, {0});
  Attrs fake;
  fake.Set("min", -1.0f);
  fake.Set("max", 1.5f);
  fake.Set("num_bits", int64_t{4});
  const Values want = {-1, -0.5f, 0, 0.333333343f, 0.833333373f, 1.5f};
  ExpectClose(RunKernel("FakeQuantWithMinMaxArgs", fake, {x}), {6}, want);
  ExpectClose(RunKernel("FakeQuantWithMinMaxVars", fake,
                        {x, FloatTensor({}, {-1}), FloatTensor({}, {1.5f})}),
              {6}, want);
  // By vectors as one by one, which is how several channels are done.
  const float kNan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> many = {kNan, kNan, INFINITY, -INFINITY};
  for (int i = 0; i < 2996; ++i) many.push_back(static_cast<float>(i - 1500) * 0.0021f);
  const Tensor pairs = FloatTensor({1500, 2}, many);
  const auto vectors = RunKernel("FakeQuantWithMinMaxArgs", fake, {pairs});
  const auto channels =
      RunKernel("FakeQuantWithMinMaxVarsPerChannel", fake,
                {pairs, FloatTensor({2}, {-1, -1}), FloatTensor({2}, {1.5f, 1.5f})});
  for (int i = 0; i < 3000; ++i) {
    const float got = (*vectors)[0].as<float>()[i], expected = (*channels)[0].as<float>()[i];
    ASSERT_TRUE(got == expected || (std::isnan(got) && std::isnan(expected))) << i;
  }
  Attrs attrs;
  attrs.Set("num_bits", int64_t{4});
  attrs.Set("range_given", false);
  ExpectClose(RunKernel("QuantizeAndDequantizeV2", attrs, {x, zero, zero}), {6},
              {-1.35714281f, -0.542857111f, 0, 0.271428555f, 0.814285636f, 1.89999986f});
  attrs.Set("range_given", true);
  attrs.Set("narrow_range", true);
  attrs.Set("round_mode", std::string("HALF_UP"));
  ExpectClose(
      RunKernel("QuantizeAndDequantizeV2", attrs, {x, FloatTensor({}, {-1}), FloatTensor({}, {1})}),
      {6}, {-1, -0.428571463f, 0, 0.285714298f, 0.714285731f, 1});
  // Version 3 takes the range for given where nothing is said.
  Attrs silent = attrs;
  silent.Erase("range_given");
  ExpectClose(RunKernel("QuantizeAndDequantizeV3", silent,
                        {x, FloatTensor({}, {-1}), FloatTensor({}, {1}),
                         Tensor::Scalar<int32_t>(DType::kInt32, 4)}),
              {6}, {-1, -0.428571463f, 0, 0.285714298f, 0.714285731f, 1});
}

// (i % 7 - 3) / 5.
Tensor Pattern(const Shape& shape, float shift = 0) {
  Values x(shape.elements());
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(static_cast<int>(i % 7) - 3) / 5 + shift;
  return FloatTensor(shape, x);
}

TEST(Cells, GruAndLstm) {
  const auto gru = RunKernel("GRUBlockCell", {},
                             {Pattern({1, 2}), Pattern({1, 2}, 0.1f), Pattern({4, 4}),
                              Pattern({4, 2}), Pattern({4}), Pattern({2})});
  ExpectClose(gru, {1, 2}, {0.440286368f, 0.401312321f}, 0);
  ExpectClose(gru, {1, 2}, {0.465057045f, 0.56463629f}, 1);
  ExpectClose(gru, {1, 2}, {-0.269444615f, -0.174031451f}, 2);
  ExpectClose(gru, {1, 2}, {-0.376666009f, -0.245157868f}, 3);
  Attrs attrs;
  attrs.Set("use_peephole", true);
  const auto lstm =
      RunKernel("LSTMBlockCell", attrs,
                {Pattern({1, 2}), Pattern({1, 2}, 0.1f), Pattern({1, 2}), Pattern({4, 8}),
                 Pattern({2}), Pattern({2}, 0.2f), Pattern({2}, -0.1f), Pattern({8})});
  const Values want[] = {{0.584190488f, 0.490001321f},   {-0.567200065f, -0.49418202f},
                         {0.731058598f, 0.817574501f},   {0.767997801f, 0.571283817f},
                         {-0.345214039f, -0.507977545f}, {-0.513300061f, -0.457529336f},
                         {-0.394213319f, -0.261379093f}};
  for (size_t k = 0; k < 7; ++k) ExpectClose(lstm, {1, 2}, want[k], k);
}

TEST(CrossEntropy, LossAndGradient) {
  const Tensor logits = FloatTensor({1, 3}, {1, 2, 3});
  const auto dense = RunKernel("SoftmaxCrossEntropyWithLogits", {},
                               {logits, FloatTensor({1, 3}, {.2f, .3f, .5f})});
  ExpectClose(dense, {1}, {1.10760593f}, 0);
  ExpectClose(dense, {1, 3}, {-0.10996943f, -0.0552715361f, 0.165240943f}, 1);
  ExpectClose(RunKernel("SparseSoftmaxCrossEntropyWithLogits", {}, {logits, Ints({2})}), {1},
              {0.40760596f}, 0);
  EXPECT_FALSE(RunKernel("SparseSoftmaxCrossEntropyWithLogits", {}, {logits, Ints({3})}).ok());
}

// Against the sum that defines the transform.
TEST(Fourier, EveryLength) {
  for (int n : {1, 2, 3, 5, 8, 12, 17, 64, 100}) {
    Values x(n);
    for (int i = 0; i < n; ++i) x[i] = static_cast<float>((i * 37) % 23) / 23;
    const auto out = RunKernel("RFFT", {}, {FloatTensor({1, n}, x), Ints({n})}, {.const_mask = 2});
    ASSERT_TRUE(out.ok()) << out.status();
    ASSERT_EQ((*out)[0].shape(), Shape({1, n / 2 + 1}));
    for (int k = 0; k <= n / 2; ++k) {
      std::complex<double> want;
      for (int i = 0; i < n; ++i) want += double(x[i]) * std::polar(1.0, -2 * M_PI * i * k / n);
      const std::complex<float> got = (*out)[0].as<std::complex<float>>()[k];
      EXPECT_NEAR(got.real(), want.real(), 1e-5) << n << " " << k;
      EXPECT_NEAR(got.imag(), want.imag(), 1e-5) << n << " " << k;
    }
    const auto back = RunKernel("IFFT", {},
                                {(*RunKernel("FFT", {},
                                             {(*RunKernel("Cast",
                                                          [] {
                                                            Attrs a;
                                                            a.Set("DstT", DType::kComplex64);
                                                            return a;
                                                          }(),
                                                          {FloatTensor({n}, x)}))[0]}))[0]});
    ASSERT_TRUE(back.ok()) << back.status();
    for (int i = 0; i < n; ++i)
      EXPECT_NEAR((*back)[0].as<std::complex<float>>()[i].real(), x[i], 1e-6);
  }
}

TEST(Fourier, TwoDimsPaddedAndCropped) {
  const Tensor x = FloatTensor({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto out =
      RunKernel("RFFT2D", {}, {x, Ints({3, 2})}, {.const_mask = 2});  // rows 1 2, 4 5, 0 0
  ASSERT_TRUE(out.ok()) << out.status();
  ASSERT_EQ((*out)[0].shape(), Shape({3, 2}));
  const auto* y = (*out)[0].as<std::complex<float>>();
  EXPECT_NEAR(y[0].real(), 12, 1e-5);
  EXPECT_NEAR(y[1].real(), -2, 1e-5);
  EXPECT_NEAR(y[2].real(), 3 + 9 * std::cos(2 * M_PI / 3), 1e-5);
  EXPECT_NEAR(y[2].imag(), -9 * std::sin(2 * M_PI / 3), 1e-5);
}

}  // namespace
}  // namespace floe
