// Conv3D and transposed convolutions: the form through columns against the plain loops, and those
// against TensorFlow's answers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/kernel_test_util.h"

namespace floe {
namespace {

using testing::ElementsAre;

struct Case {
  int spatial;
  std::vector<int64_t> image;  // spatial sizes
  std::vector<int64_t> taps;
  int64_t channels, filter_in, filter_out;
  std::vector<int64_t> stride, dilation;
  std::string padding;
  Activation activation = Activation::kNone;  // with a bias
};

// Batch, spatial sizes and channels.
std::vector<int64_t> Arranged(int64_t batch, const std::vector<int64_t>& sizes, int64_t channels) {
  std::vector<int64_t> dims = sizes;
  dims.push_back(channels);
  dims.insert(dims.begin(), batch);
  return dims;
}

// `inputs`: with the bias behind the others, where there is one.
Attrs AttrsOf(const Case& c, const std::vector<Tensor>& inputs) {
  Attrs attrs;
  attrs.Set("strides", Arranged(1, c.stride, 1));
  attrs.Set("dilations", Arranged(1, c.dilation, 1));
  attrs.Set("padding", c.padding);
  attrs.Set("data_format", std::string(c.spatial == 2 ? "NHWC" : "NDHWC"));
  if (c.activation != Activation::kNone)
    SetEpilogue({.activation = c.activation, .bias = static_cast<int>(inputs.size()) - 1}, &attrs);
  return attrs;
}

std::vector<int64_t> ResultSizes(const Case& c) {
  std::vector<int64_t> sizes;
  for (int i = 0; i < c.spatial; ++i) {
    const int64_t span = (c.taps[i] - 1) * c.dilation[i] + 1;
    sizes.push_back(c.padding == "SAME" ? (c.image[i] + c.stride[i] - 1) / c.stride[i]
                                        : (c.image[i] - span) / c.stride[i] + 1);
  }
  return sizes;
}

// Runs with the filter constant or not, on several threads or one, and compares with plain loops.
// `route`: of those with a constant filter; empty: the cheapest.
void Check(const std::string& op, const Case& c, const std::vector<Tensor>& inputs,
           const std::string& route = "") {
  const auto want = RunKernel(op, AttrsOf(c, inputs), inputs,
                              {.kernels = {.gemm = GemmBackend::kReference}, .const_mask = 1});
  ASSERT_TRUE(want.ok()) << want.status();
  for (const uint64_t mask : {3, 1}) {
    std::vector<float> bits;
    for (const int threads : {1, 3}) {
      RunOptions options{.threads = threads, .const_mask = mask};
      if (mask == 3 && !route.empty()) options.kernels.routes["under_test"] = route;
      const auto got = RunKernel(op, AttrsOf(c, inputs), inputs, options);
      ASSERT_TRUE(got.ok()) << got.status();
      ASSERT_EQ(got->at(0).shape(), want->at(0).shape());
      const float *x = got->at(0).as<float>(), *y = want->at(0).as<float>();
      const int64_t n = got->at(0).elements();
      for (int64_t i = 0; i < n; ++i) ASSERT_NEAR(x[i], y[i], 1e-4) << op << " at " << i;
      if (bits.empty()) bits.assign(x, x + n);
      EXPECT_EQ(std::vector<float>(x, x + n), bits);
    }
  }
}

const std::vector<Case>& Cases() {
  static const std::vector<Case> cases = {
      {2, {7, 9}, {3, 2}, 5, 5, 6, {1, 1}, {1, 1}, "SAME"},
      {2, {8, 6}, {3, 3}, 4, 4, 20, {2, 3}, {1, 1}, "SAME"},
      {2, {9, 9}, {2, 3}, 6, 2, 9, {1, 2}, {2, 1}, "VALID"},
      {2, {5, 5}, {1, 1}, 3, 3, 4, {2, 2}, {1, 1}, "VALID"},
      {2, {40, 300}, {3, 3}, 32, 32, 8, {1, 1}, {1, 1}, "SAME"},  // more than one block of lines
      {2, {13, 11}, {5, 4}, 7, 7, 6, {2, 3}, {1, 1}, "SAME"},
      {2, {12, 10}, {4, 4}, 33, 33, 5, {2, 2}, {1, 1}, "SAME", Activation::kRelu},
      {2, {12, 10}, {3, 5}, 6, 6, 8, {4, 3}, {1, 1}, "VALID", Activation::kTanh},
      {2, {11, 9}, {2, 1}, 3, 3, 4, {3, 2}, {1, 1}, "SAME", Activation::kRelu6},
      {2, {90, 70}, {4, 4}, 64, 64, 3, {2, 2}, {1, 1}, "SAME", Activation::kRelu},
      {2, {9, 9}, {2, 3}, 6, 2, 9, {1, 2}, {1, 1}, "VALID", Activation::kRelu},
      {2, {8, 7}, {3, 3}, 4, 4, 6, {2, 2}, {1, 1}, "SAME", Activation::kSigmoid},
      {3, {4, 5, 6}, {3, 2, 3}, 3, 3, 5, {1, 2, 1}, {1, 1, 1}, "SAME", Activation::kElu},
      {3, {4, 5, 6}, {3, 2, 3}, 3, 3, 5, {1, 2, 1}, {1, 1, 1}, "SAME"},
      {3, {6, 5, 7}, {2, 2, 2}, 4, 2, 6, {2, 1, 1}, {1, 2, 3}, "VALID"},
  };
  return cases;
}

// input_sizes, filter, gradient, and a bias for an activation.
std::vector<Tensor> GradientInputs(const Case& c) {
  const auto image = Arranged(2, c.image, c.channels);
  const std::vector<int32_t> sizes(image.begin(), image.end());
  std::vector<int64_t> filter = c.taps;
  filter.insert(filter.end(), {c.filter_in, c.filter_out});
  std::vector<Tensor> inputs = {Tensor::Vector(DType::kInt32, sizes),
                                RandomTensor(Shape(filter), 1),
                                RandomTensor(Shape(Arranged(2, ResultSizes(c), c.filter_out)), 2)};
  if (c.activation != Activation::kNone) inputs.push_back(RandomTensor({c.channels}, 3));
  return inputs;
}

TEST(ColumnsConv, GradientsMatchThePlainLoops) {
  for (const Case& c : Cases()) {
    const std::string op = c.spatial == 2 ? "Conv2DBackpropInput" : "Conv3DBackpropInputV2";
    const std::vector<Tensor> inputs = GradientInputs(c);
    const auto made = MakeTestKernel(op, AttrsOf(c, inputs), inputs, {.const_mask = 3});
    ASSERT_TRUE(made.ok()) << made.status();
    for (const RouteChoice::Offer& offer : (*made)->kernel->choice().offers)
      Check(op, c, inputs, offer.name);
  }
}

// Few outputs leave most of a vector empty; through columns, those of all taps lie side by side.
TEST(ColumnsConv, AreChosenForFewOutputs) {
  const char* few = kernels::PickGemm().lanes > 4 ? "columns" : "phases";
  for (const auto& [channels, route] : {std::pair(3, few), std::pair(32, "phases")}) {
    const Case c{2, {32, 30}, {5, 5}, channels, channels, 32, {2, 2}, {1, 1}, "SAME"};
    const std::vector<Tensor> inputs = GradientInputs(c);
    const auto made =
        MakeTestKernel("Conv2DBackpropInput", AttrsOf(c, inputs), inputs, {.const_mask = 3});
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_EQ((*made)->kernel->choice().chosen, route) << channels;
  }
}

TEST(VolumeConv, MatchesThePlainLoops) {
  for (const Case& c : Cases()) {
    if (c.spatial == 2) continue;
    std::vector<int64_t> filter = c.taps;
    filter.insert(filter.end(), {c.filter_in, c.filter_out});
    std::vector<Tensor> inputs = {RandomTensor(Shape(Arranged(2, c.image, c.channels)), 3),
                                  RandomTensor(Shape(filter), 4)};
    if (c.activation != Activation::kNone) inputs.push_back(RandomTensor({c.filter_out}, 5));
    Check("Conv3D", c, inputs);
  }
}

TEST(ConvNd, IntegersAsTensorFlow) {
  Attrs attrs;
  attrs.Set("strides", std::vector<int64_t>{1, 1, 1, 1});
  attrs.Set("padding", std::string("VALID"));
  const Tensor counts = Tensor::Vector(DType::kInt32, std::vector<int32_t>{1, 2, 3, 4, 5, 6, 7, 8});
  const auto out = RunKernel("Conv2DBackpropInput", attrs,
                             {Tensor::Vector(DType::kInt32, std::vector<int32_t>{1, 3, 3, 1}),
                              counts.Reshaped({2, 2, 1, 2}), counts.Reshaped({1, 2, 2, 2})},
                             {.const_mask = 1});
  ASSERT_TRUE(out.ok()) << out.status();
  const auto* values = out->at(0).as<int32_t>();
  EXPECT_THAT(std::vector<int32_t>(values, values + 9),
              ElementsAre(5, 22, 25, 34, 124, 106, 61, 166, 113));
}

TEST(ConvNd, FilterAndGradientAreOfOneType) {
  Attrs attrs;
  attrs.Set("strides", std::vector<int64_t>{1, 1, 1, 1});
  attrs.Set("padding", std::string("SAME"));
  EXPECT_EQ(
      RunKernel("Conv2DBackpropInput", attrs,
                {Tensor::Vector(DType::kInt32, std::vector<int32_t>{1, 3, 3, 1}),
                 Tensor::Allocate(DType::kFloat16, {1, 1, 1, 1}), RandomTensor({1, 3, 3, 1}, 1)},
                {.const_mask = 1})
          .status()
          .code(),
      absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace floe
