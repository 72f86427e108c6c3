#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "kernels/cuda/device_for_test.h"

namespace floe::cuda {
namespace {

struct WinogradCase {
  int64_t images, height, width, channels, columns;
  std::string padding = "SAME";
  Activation activation = Activation::kNone;  // with a bias
  bool residual = false;
};

Attrs AttrsOf(const WinogradCase& c) {
  Attrs attrs;
  attrs.Set("strides", std::vector<int64_t>{1, 1, 1, 1});
  attrs.Set("padding", c.padding);
  attrs.Set("data_format", std::string("NHWC"));
  if (c.padding == "EXPLICIT")
    attrs.Set("explicit_paddings", std::vector<int64_t>{0, 0, 2, 1, 0, 3, 0, 0});
  const bool bias = c.activation != Activation::kNone;
  SetEpilogue({.activation = c.activation,
               .alpha = 0.2f,
               .bias = bias ? 2 : -1,
               .residual = c.residual ? (bias ? 3 : 2) : -1},
              &attrs);
  return attrs;
}

RunOptions ByRoute(const std::string& route) {
  RunOptions options = OnDevice(2);
  options.kernels.routes["under_test"] = route;
  return options;
}

Tensor RunByRoute(const WinogradCase& c, const std::vector<Tensor>& inputs,
                  const std::string& route) {
  const auto made = RunKernel("Conv2D", AttrsOf(c), inputs, ByRoute(route));
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? (*made)[0] : Tensor();
}

std::vector<Tensor> InputsOf(const WinogradCase& c) {
  return {RandomTensor(Shape({c.images, c.height, c.width, c.channels}), 1),
          RandomTensor(Shape({3, 3, c.channels, c.columns}), 2)};
}

// The largest error against float64, as a part of what the absolute values of a window's terms add
// up to on average.
double ErrorOf(const WinogradCase& c, const std::vector<Tensor>& inputs, const Tensor& got) {
  const int64_t low = c.padding == "SAME" ? 1 : 0, height = got.shape().dim(1),
                width = got.shape().dim(2);
  const double scale = 9 * 0.25 * static_cast<double>(c.channels);
  double worst = 0;
  for (int64_t i = 0; i < got.elements(); ++i) {
    const int64_t column = i % c.columns, x = i / c.columns % width,
                  y = i / c.columns / width % height, n = i / c.columns / width / height;
    double sum = 0;
    for (int64_t tap = 0; tap < 9; ++tap) {
      const int64_t iy = y + tap / 3 - low, ix = x + tap % 3 - low;
      if (iy < 0 || ix < 0 || iy >= c.height || ix >= c.width) continue;
      for (int64_t k = 0; k < c.channels; ++k)
        sum +=
            double{inputs[0].as<float>()[((n * c.height + iy) * c.width + ix) * c.channels + k]} *
            inputs[1].as<float>()[(tap * c.channels + k) * c.columns + column];
    }
    worst = std::max(worst, std::abs(sum - got.as<float>()[i]) / scale);
  }
  return worst;
}

// The bounds are those of the CPU's transforms.
TEST(WinogradOnDeviceTest, IsNearlyAsExactAsPlainSums) {
  const WinogradCase c = {2, 13, 11, 64, 20};
  const std::vector<Tensor> inputs = InputsOf(c);
  const double plain = ErrorOf(c, inputs, RunByRoute(c, inputs, "gemm")),
               two = ErrorOf(c, inputs, RunByRoute(c, inputs, "winograd2x2")),
               four = ErrorOf(c, inputs, RunByRoute(c, inputs, "winograd4x4"));
  std::printf("plain %.1e, 2x2 %.1e, 4x4 %.1e of a window's terms\n", plain, two, four);
  EXPECT_LT(plain, 3e-7);
  EXPECT_LT(two, 4e-7);
  EXPECT_LT(four, 8e-7);
}

TEST(WinogradOnDeviceTest, AgreesWithPlainSumsInEveryOrderAndBatch) {
  const WinogradCase cases[] = {
      {2, 9, 7, 4, 5},
      {3, 8, 8, 12, 33, "SAME", Activation::kRelu},
      {2, 10, 6, 8, 4, "VALID", Activation::kGelu, true},
      {2, 5, 4, 4, 8, "EXPLICIT", Activation::kLeakyRelu},
      {1, 3, 3, 4, 1, "VALID"},
      {2, 1, 1, 8, 8},
  };
  for (const WinogradCase& c : cases) {
    std::vector<Tensor> inputs = InputsOf(c);
    SCOPED_TRACE(inputs[0].shape().ToString() + c.padding);
    if (c.activation != Activation::kNone) inputs.push_back(RandomTensor(Shape({c.columns}), 3));
    if (c.residual) {
      const int64_t less = c.padding == "VALID" ? 2 : 0;
      inputs.push_back(
          RandomTensor(Shape({c.images, c.height - less, c.width - less, c.columns}), 4));
    }
    const Tensor plain = RunByRoute(c, inputs, "gemm");
    const std::vector<double> want(plain.as<float>(), plain.as<float>() + plain.elements());
    for (const std::string route : {"winograd2x2", "winograd4x4"}) {
      SCOPED_TRACE(route);
      Tensor first;
      for (const EmulatorOptions& order : EveryOrder()) {
        const ScopedEmulatorOptions scoped(order);
        const Tensor got = RunByRoute(c, inputs, route);
        ASSERT_EQ(got.shape(), plain.shape());
        if (!first.valid()) first = got;
        EXPECT_TRUE(SameBits(first, got)) << "bits follow the order of threads";
      }
      ExpectNear(first, want.data(), 2e-5);
      for (int64_t row = 0; row < c.images; ++row) {
        std::vector<Tensor> alone = inputs;
        alone[0] = RowsOf(inputs[0], row, row + 1);
        if (c.residual) alone.back() = RowsOf(inputs.back(), row, row + 1);
        EXPECT_TRUE(SameBits(RunByRoute(c, alone, route), RowsOf(first, row, row + 1))) << row;
      }
    }
  }
}

// Tiles that would lose too much are plain sums, to the bit; others do not notice.
TEST(WinogradOnDeviceTest, ComputesUnevenTilesByPlainSums) {
  const WinogradCase c = {1, 12, 12, 8, 8};
  for (const float odd : {INFINITY, NAN, 1e6f, 1e30f}) {
    SCOPED_TRACE(odd);
    std::vector<Tensor> inputs = InputsOf(c);
    static_cast<float*>(inputs[0].mutable_data())[(5 * 12 + 5) * 8 + 3] = odd;
    const Tensor plain = RunByRoute(c, inputs, "gemm");
    for (const std::string route : {"winograd2x2", "winograd4x4"}) {
      const Tensor got = RunByRoute(c, inputs, route);
      int same = 0;
      for (int64_t i = 0; i < got.elements(); ++i) {
        const float a = got.as<float>()[i], b = plain.as<float>()[i];
        if (std::isfinite(b)) {
          ASSERT_NEAR(a, b, 2e-5 * std::max(1.0f, std::abs(b))) << i;
        } else {
          ASSERT_EQ(std::isnan(a), std::isnan(b)) << i;
        }
        same += std::memcmp(&a, &b, sizeof a) == 0;
      }
      EXPECT_GE(same, 4 * 4 * 8) << route;
    }
  }
}

TEST(WinogradOnDeviceTest, WindowsOfZerosGiveZeros) {
  const WinogradCase c = {1, 12, 12, 4, 4};
  std::vector<Tensor> inputs = InputsOf(c);
  auto* const x = static_cast<float*>(inputs[0].mutable_data());
  for (int64_t i = 0; i < 7 * 12 * 4; ++i) x[i] = 0;  // rows 0 to 6
  for (const std::string route : {"winograd2x2", "winograd4x4"}) {
    const Tensor got = RunByRoute(c, inputs, route);
    for (int64_t i = 0; i < 6 * 12 * 4; ++i) ASSERT_EQ(got.as<float>()[i], 0) << route << i;
    EXPECT_NE(got.as<float>()[6 * 12 * 4], 0);
  }
}

TEST(WinogradOnDeviceTest, IsChosenByTheLayer) {
  const auto chosen = [](const WinogradCase& c) {
    Node node;
    node.op = FindOp("Conv2D");
    node.attrs = AttrsOf(c);
    std::vector<ValueInfo> infos;
    for (const Tensor& input : InputsOf(c))
      infos.push_back({{input.dtype(), SymShape(input.shape())}, {}, {}});
    infos[1].constant = InputsOf(c)[1];
    const RunOptions options = OnDevice();
    const auto made =
        FindKernel("Conv2D", DeviceKind::kCuda, DType::kFloat32)({node, infos, options.kernels});
    EXPECT_TRUE(made.ok()) << made.status();
    return made.ok() ? (*made)->choice().chosen : "";
  };
  EXPECT_EQ(chosen({1, 28, 28, 128, 128}), "winograd4x4");
  EXPECT_EQ(chosen({1, 28, 28, 8, 8}), "gemm");
  EXPECT_EQ(chosen({1, 28, 28, 130, 128}), "");  // channels are no fours: nothing to choose from
}

}  // namespace
}  // namespace floe::cuda
