#include "kernels/cuda/emit/fft_conv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/memory_budget.h"
#include "base/rounds_for_test.h"
#include "kernels/cpu/conv/long_conv_for_test.h"
#include "kernels/cuda/device_for_test.h"

namespace floe::cuda {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNoNumber = std::numeric_limits<float>::quiet_NaN();

RunOptions ByRoute(const LongConv& t, const std::string& route) {
  RunOptions options = OnDevice(t.bias ? 6 : 2);
  options.kernels.routes["under_test"] = route;
  return options;
}

// In every order of threads the same bits; they are returned.
Tensor RunRoute(const LongConv& t, const std::vector<Tensor>& inputs, const std::string& route) {
  Tensor first;
  for (const EmulatorOptions& order : EveryOrder()) {
    const ScopedEmulatorOptions scoped(order);
    const auto got = RunKernel("Conv2D", AttrsOf(t), inputs, ByRoute(t, route));
    EXPECT_TRUE(got.ok()) << got.status();
    if (!got.ok()) return first;
    if (!first.valid()) first = (*got)[0];
    EXPECT_TRUE(SameBits(first, (*got)[0])) << "bits follow the order of threads";
  }
  return first;
}

void ExpectConv(const LongConv& t) {
  SCOPED_TRACE(testing::Message() << t.images << " of " << t.length << " x " << t.channels
                                  << ", taps " << t.taps << " to " << t.columns << ", stride "
                                  << t.stride << ", dilation " << t.dilation << " " << t.padding);
  const std::vector<Tensor> inputs = InputsOf(t);
  const Tensor got = RunRoute(t, inputs, "fft");
  ASSERT_TRUE(got.valid());
  ExpectNear(t, inputs, got);
}

TEST(FftOnDeviceTest, AgreesWithFloat64) {
  for (const std::string padding : {"VALID", "SAME", "EXPLICIT"}) {
    for (const int64_t stride : {1, 4}) {
      EXPECT_NO_FATAL_FAILURE(
          ExpectConv({2, 211, 3, 20, 5, stride, 1, padding, Activation::kRelu}));
    }
    EXPECT_NO_FATAL_FAILURE(ExpectConv({2, 139, 5, 17, 7, 1, 5, padding}));
    EXPECT_NO_FATAL_FAILURE(
        ExpectConv({1, 401, 7, 200, 3, 3, 1, padding, Activation::kTanh, true}));
  }
  EXPECT_NO_FATAL_FAILURE(ExpectConv({2, 30, 3, 9, 5, 1, 50, "SAME"}));
  LongConv t{3, 49, 33, 16, 34};
  t.bias = false;
  EXPECT_NO_FATAL_FAILURE(ExpectConv(t));
}

// The result by a plan that is not chosen by its cost.
Tensor RunPlan(const LongConv& t, const std::vector<Tensor>& inputs, const FftDevicePlan& plan) {
  const auto made = MakeTestKernel("Conv2D", AttrsOf(t), inputs, ByRoute(t, "fft"));
  EXPECT_TRUE(made.ok()) << made.status();
  const TestKernel& test = **made;
  const auto conv = ops::ConvNdOf(test.node.attrs, 2);
  EXPECT_TRUE(conv.ok());
  const auto kernel = MakeFftOnDevice({test.node, test.infos, test.options}, *conv, plan);
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  const auto got = RunTestKernel(**kernel, inputs, test.output_types);
  EXPECT_TRUE(got.ok()) << got.status();
  return (*got)[0];
}
std::vector<FftDevicePlan> PlansOf(const LongConv& t) {
  return FftPlansOnDevice({.taps = t.taps,
                           .width = t.channels,
                           .columns = t.columns,
                           .out = t.length - t.taps + 1,
                           .weights = t.taps * t.channels * t.columns});
}

TEST(FftOnDeviceTest, EveryNumberOfPoints) {
  const LongConv t{2, 270, 2, 12, 3};
  const std::vector<Tensor> inputs = InputsOf(t);
  const std::vector<FftDevicePlan> plans = PlansOf(t);
  ASSERT_EQ(plans.size(), 16);
  for (const FftDevicePlan& plan : plans) {
    SCOPED_TRACE(plan.points());
    EXPECT_NO_FATAL_FAILURE(ExpectNear(t, inputs, RunPlan(t, inputs, plan)));
  }
  // As many taps as points: a tile gives one row.
  const LongConv one{1, 260, 2, 256, 3};
  ASSERT_EQ(PlansOf(one).size(), 1);
  EXPECT_NO_FATAL_FAILURE(ExpectConv(one));
}

TEST(FftOnDeviceTest, ImagesAreComputedAlone) {
  const LongConv t{5, 333, 18, 20, 35, 1, 1, "SAME", Activation::kRelu};
  const std::vector<Tensor> inputs = InputsOf(t);
  const auto all = RunKernel("Conv2D", AttrsOf(t), inputs, ByRoute(t, "fft"));
  ASSERT_TRUE(all.ok()) << all.status();
  for (int64_t image = 0; image < t.images; ++image) {
    std::vector<Tensor> alone = inputs;
    alone[0] = RowsOf(inputs[0], image, image + 1);
    const auto one = RunKernel("Conv2D", AttrsOf(t), alone, ByRoute(t, "fft"));
    ASSERT_TRUE(one.ok()) << one.status();
    EXPECT_TRUE(SameBits((*one)[0], RowsOf((*all)[0], image, image + 1))) << image;
  }
}

// More tiles than the spectra have room for: the same bits.
TEST(FftOnDeviceTest, TilesAreComputedInParts) {
  const LongConv t{3, 300, 5, 20, 7};
  const std::vector<Tensor> inputs = InputsOf(t);
  FftDevicePlan plan = PlansOf(t)[6];
  const Tensor at_once = RunPlan(t, inputs, plan);
  EXPECT_NO_FATAL_FAILURE(ExpectNear(t, inputs, at_once));
  for (const int64_t together : {1, 5}) {
    plan.together = together;
    EXPECT_TRUE(SameBits(RunPlan(t, inputs, plan), at_once)) << together;
  }
}

void ExpectAsDirect(const Tensor& fft, const Tensor& gemm, double tolerance, float large) {
  for (int64_t i = 0; i < gemm.elements(); ++i) {
    const float got = fft.as<float>()[i], want = gemm.as<float>()[i];
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(got)) << i;
    } else if (std::abs(want) < large) {
      ASSERT_NEAR(got, want, tolerance) << i;
    } else {
      ASSERT_EQ(got, want) << i;
    }
  }
}

TEST(FftOnDeviceTest, TilesBeyondTheBoundsAreComputedDirectly) {
  const LongConv t{2, 300, 3, 20, 5};
  for (const float value : {kInf, -kInf, kNoNumber, 3e38f, 1e3f, 1e8f}) {
    SCOPED_TRACE(value);
    for (int i = 0; i < Rounds(3); ++i) {
      const int64_t row = std::array{140, 0, 299}[i];
      std::vector<Tensor> inputs = InputsOf(t);
      static_cast<float*>(inputs[0].mutable_data())[(t.length + row) * t.channels + 1] = value;
      const Tensor fft = RunRoute(t, inputs, "fft"), gemm = RunRoute(t, inputs, "gemm");
      ASSERT_TRUE(fft.valid() && gemm.valid());
      // A large number is in direct tiles only, whose sums are those of the other route.
      EXPECT_NO_FATAL_FAILURE(ExpectAsDirect(fft, gemm, 2e-5, 50));
    }
  }
  // Numbers whose products come near the smallest that there are.
  std::vector<Tensor> tiny = InputsOf(t);
  for (int64_t i = 0; i < tiny[0].elements(); ++i)
    static_cast<float*>(tiny[0].mutable_data())[i] *= 1e-30f;
  EXPECT_TRUE(SameBits(RunRoute(t, tiny, "fft"), RunRoute(t, tiny, "gemm")));
}

TEST(FftOnDeviceTest, WindowsOfZerosGiveTheBiasExactly) {
  LongConv t{1, 260, 3, 20, 5};
  for (const Activation activation : {Activation::kNone, Activation::kTanh}) {
    t.activation = activation;
    std::vector<Tensor> inputs = InputsOf(t);
    std::fill_n(static_cast<float*>(inputs[0].mutable_data()) + 100 * 3, 60 * 3, 0.0f);
    const Tensor fft = RunRoute(t, inputs, "fft"), gemm = RunRoute(t, inputs, "gemm");
    ASSERT_TRUE(fft.valid() && gemm.valid());
    EXPECT_TRUE(SameBits(RowsOf(fft.Reshaped({241, 5}), 100, 141),
                         RowsOf(gemm.Reshaped({241, 5}), 100, 141)));
    EXPECT_NO_FATAL_FAILURE(ExpectNear(t, inputs, fft));
  }
}

TEST(FftOnDeviceTest, ResidualsAreAddedBeforeTheActivation) {
  const LongConv t{2, 200, 4, 20, 6};
  std::vector<Tensor> inputs = InputsOf(t);
  static_cast<float*>(inputs[0].mutable_data())[150 * 4] = 1e6f;
  const Tensor sums = RunRoute(t, inputs, "fft");
  inputs.push_back(RandomTensor(sums.shape(), 9));
  Attrs attrs = AttrsOf(t);
  SetEpilogue({.activation = Activation::kRelu, .bias = 2, .residual = 3}, &attrs);
  const auto got = RunKernel("Conv2D", attrs, inputs, ByRoute(t, "fft"));
  ASSERT_TRUE(got.ok()) << got.status();
  for (int64_t i = 0; i < sums.elements(); ++i) {
    const float sum = sums.as<float>()[i] + inputs[3].as<float>()[i];
    ASSERT_EQ((*got)[0].as<float>()[i], sum < 0 ? 0 : sum) << i;
  }
}

std::string Chosen(const LongConv& t, const RunOptions& options) {
  const auto made = MakeTestKernel("Conv2D", AttrsOf(t), InputsOf(t), options);
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? (*made)->kernel->choice().chosen : "";
}

TEST(FftOnDeviceTest, IsChosenByACostThatNoDeviceChanges) {
  const LongConv t{1, 1343, 64, 20, 64};
  EXPECT_EQ(Chosen(t, OnDevice(6)), "fft");
  RunOptions off = OnDevice(6);
  off.kernels.conv.fft = false;
  EXPECT_EQ(Chosen(t, off), "");  // there is no other
  RunOptions little = OnDevice(6);
  little.kernels.conv.fft_growth = 1;
  EXPECT_EQ(Chosen(t, little), "");
  EXPECT_EQ(Chosen({1, 1343, 64, 3, 64}, OnDevice(6)), "");     // few taps
  EXPECT_EQ(Chosen({1, 21, 64, 20, 64}, OnDevice(6)), "gemm");  // few results
  EXPECT_EQ(Chosen({1, 1343, 2, 8, 2}, OnDevice(6)), "gemm");   // more to move than to add
  const MemoryBudget budget(int64_t{1} << 20);
  const MemoryScope scope(budget);
  const auto made = MakeTestKernel("Conv2D", AttrsOf(t), InputsOf(t), OnDevice(6));
  EXPECT_EQ(made.status().code(), absl::StatusCode::kResourceExhausted) << made.status();
  EXPECT_THAT(std::string(made.status().message()), testing::HasSubstr("fft: off"));
}

}  // namespace
}  // namespace floe::cuda
