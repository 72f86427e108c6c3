#include "kernels/cpu/conv/fft_conv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/memory_budget.h"
#include "kernels/cpu/conv/conv_routes_for_test.h"
#include "kernels/cpu/conv/long_conv_for_test.h"
#include "kernels/cpu/every_isa_for_test.h"
#include "kernels/cpu/hwy_targets.h"
#include "kernels/cpu/kernel_test_util.h"

namespace floe {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Against the definition in float64: the spectrum, and the way back after a product with the
// spectrum of one tap.
void ExpectTransform(int points) {
  const kernels::FftKernels kernels = kernels::PickFft();
  const kernels::TileFft fft(points);
  const int64_t block = kernels.block(), planes = fft.planes();
  const Tensor x = RandomTensor({points, block}, 5);
  std::vector<float> data(planes * block), taps(points * block);
  const AlignedBuffer spectrum(kernels::FftWeightPlanes(points) * block * sizeof(float));
  auto* weights = reinterpret_cast<float*>(spectrum.data());
  kernels.forward(fft, {x.as<float>(), block}, data.data(), block);
  constexpr double kTwoPi = 6.283185307179586477;
  for (int64_t c = 0; c < block; c += block - 1) {
    for (int f = 0; f <= points / 2; ++f) {
      double re = 0, im = 0;
      for (int n = 0; n < points; ++n) {
        re += 2 * x.as<float>()[n * block + c] * std::cos(kTwoPi * n * f / points);
        im -= 2 * x.as<float>()[n * block + c] * std::sin(kTwoPi * n * f / points);
      }
      const bool real = f == 0 || f == points / 2;
      const int64_t plane = f == 0 ? 0 : 1 + 3 * (f - 1);
      const double error = 3e-6 * std::sqrt(points);
      if (real) {
        ASSERT_NEAR(data[plane * block + c], re, error) << "frequency " << f;
        continue;
      }
      ASSERT_NEAR(data[plane * block + c], re, error) << "frequency " << f;
      ASSERT_NEAR(data[(plane + 1) * block + c], im, error) << "frequency " << f;
      ASSERT_NEAR(data[(plane + 2) * block + c], re + im, 2 * error) << "frequency " << f;
    }
  }
  // One tap at row 3: the result is the data from row 3 on.
  std::fill_n(taps.begin() + 3 * block, block, 1.0f);
  kernels.weights(fft, {taps.data(), block}, weights, block, block);
  for (int64_t p = 0; p < planes; ++p) {
    const kernels::FftFactor factor = kernels::FactorOf(p, points);
    for (int64_t c = 0; c < block; ++c) {
      const float minus = factor.minus < 0 ? 0 : weights[factor.minus * block + c];
      data[p * block + c] *= weights[factor.b * block + c] - minus;
    }
  }
  // Nobody computes the products of a channel that is not there.
  for (int64_t p = 0; p < planes; ++p) data[p * block + block - 1] = kNan;
  const std::vector<float> bias(block, 0.5f);
  std::vector<float> result(points * block, kNan);
  const int64_t count = points - 5;
  kernels.inverse(fft, data.data(), block,
                  {result.data(), block, count, block - 1, bias.data(), true});
  for (int64_t n = 0; n < points; ++n) {
    for (int64_t c = 0; c < block; ++c) {
      const float got = result[n * block + c];
      if (n >= count || c == block - 1) {
        ASSERT_TRUE(std::isnan(got)) << n << "," << c;
      } else {
        ASSERT_NEAR(got, std::max(0.0f, x.as<float>()[(n + 3) * block + c] + 0.5f), 3e-6) << n;
      }
    }
  }
}

TEST(FftTransforms, EveryNumberOfPointsOnEveryIsa) {
  OnEveryIsa([] {
    for (const int points : kernels::FftPoints()) {
      SCOPED_TRACE(points);
      EXPECT_NO_FATAL_FAILURE(ExpectTransform(points));
    }
  });
}

TEST(FftTransforms, TheLargestValueIsThatOfAllLanes) {
  OnEveryIsa([] {
    const kernels::FftKernels kernels = kernels::PickFft();
    for (int64_t count = 1; count < 70; ++count) {
      std::vector<float> values(count, -0.25f);
      for (int64_t i = 0; i < count; ++i) {
        values[i] = -3;
        float largest = 0;
        const uint32_t bits = kernels.largest(values.data(), count);
        std::memcpy(&largest, &bits, sizeof largest);
        ASSERT_EQ(largest, 3) << i << " of " << count;
        values[i] = kNan;
        ASSERT_GT(kernels.largest(values.data(), count), 0x7F800000u);
        values[i] = -0.25f;
      }
    }
  });
}

using Case = LongConv;

absl::StatusOr<std::vector<Tensor>> RunRoute(const Case& t, const std::vector<Tensor>& inputs,
                                             const std::string& route, int threads = 1) {
  RunOptions options;
  options.kernels.routes["under_test"] = route;
  options.threads = threads;
  options.const_mask = t.bias ? 6 : 2;
  return RunKernel("Conv2D", AttrsOf(t), inputs, options);
}

void ExpectConv(const Case& t) {
  SCOPED_TRACE(testing::Message() << t.images << " of " << t.length << " x " << t.channels
                                  << ", taps " << t.taps << " to " << t.columns << ", stride "
                                  << t.stride << ", dilation " << t.dilation << " " << t.padding
                                  << " " << static_cast<int>(t.activation) << " along_h "
                                  << t.along_h);
  const std::vector<Tensor> inputs = InputsOf(t);
  const auto got = RunRoute(t, inputs, "fft");
  ASSERT_TRUE(got.ok()) << got.status();
  ExpectNear(t, inputs, (*got)[0]);
}

TEST(FftConv, OddSizesOnEveryIsa) {
  OnEveryIsa([] {
    for (const std::string padding : {"VALID", "SAME", "EXPLICIT"}) {
      for (int64_t stride : {1, 2, 4}) {
        EXPECT_NO_FATAL_FAILURE(
            ExpectConv({2, 211, 3, 20, 5, stride, 1, padding, Activation::kRelu}));
      }
      for (int64_t dilation : {2, 5}) {
        EXPECT_NO_FATAL_FAILURE(ExpectConv({2, 139, 5, 17, 7, 1, dilation, padding}));
      }
      EXPECT_NO_FATAL_FAILURE(
          ExpectConv({1, 401, 7, 200, 3, 3, 1, padding, Activation::kTanh, true}));
    }
    EXPECT_NO_FATAL_FAILURE(ExpectConv({2, 30, 3, 9, 5, 1, 50, "SAME"}));
    for (int64_t channels : {1, 15, 16, 31, 33}) {
      for (int64_t columns : {1, 16, 17, 32, 49}) {
        EXPECT_NO_FATAL_FAILURE(ExpectConv({1, 90, channels, 16, columns}));
      }
    }
  });
}

TEST(FftConv, LengthsAroundTilesAndNoBias) {
  for (int64_t length : {16, 17, 47, 48, 49, 129, 130, 700}) {
    Case t{3, length, 4, 16, 6};
    EXPECT_NO_FATAL_FAILURE(ExpectConv(t));
    t.bias = false;
    t.activation = Activation::kRelu;
    EXPECT_NO_FATAL_FAILURE(ExpectConv(t));
  }
}

// Rows by the transform, without data under them, and with an infinity: each adds the residual.
TEST(FftConv, ResidualsAreAddedBeforeTheActivation) {
  for (const Activation activation : {Activation::kNone, Activation::kRelu, Activation::kTanh}) {
    const Case t{2, 700, 4, 20, 6};
    std::vector<Tensor> inputs = InputsOf(t);
    auto* x = static_cast<float*>(inputs[0].mutable_data());
    std::fill_n(x + 100 * 4, 60 * 4, 0.0f);
    x[600 * 4] = std::numeric_limits<float>::infinity();
    const auto sums = RunRoute(t, inputs, "fft");
    ASSERT_TRUE(sums.ok()) << sums.status();
    ASSERT_NO_FATAL_FAILURE(ExpectResidualAdded(AttrsOf(t), inputs, "fft", activation, (*sums)[0]));
  }
}

// Bits of one image do not change with the others, nor with threads.
TEST(FftConv, ImagesAreComputedAloneOnEveryIsa) {
  OnEveryIsa([] {
    const Case many{7, 333, 18, 20, 35, 1, 1, "SAME", Activation::kRelu};
    std::vector<Tensor> inputs = InputsOf(many);
    const auto together = RunRoute(many, inputs, "fft", 3);
    ASSERT_TRUE(together.ok()) << together.status();
    Case one = many;
    one.images = 1;
    const int64_t in = 333 * 18, out = 333 * 35;
    for (int64_t image = 0; image < 7; ++image) {
      std::vector<Tensor> alone = InputsOf(one);
      std::memcpy(alone[0].mutable_data(), inputs[0].as<float>() + image * in, in * sizeof(float));
      const auto got = RunRoute(one, alone, "fft");
      ASSERT_TRUE(got.ok()) << got.status();
      const auto *a = (*got)[0].as<uint32_t>(), *b = (*together)[0].as<uint32_t>() + image * out;
      EXPECT_TRUE(std::equal(a, a + out, b)) << "image " << image;
    }
  });
}

// Results of both routes for data with `value` at one row of image 1.
struct Both {
  std::vector<float> fft, gemm;
  Both(const Case& t, float value, int64_t row, float scale = 1) {
    std::vector<Tensor> inputs = InputsOf(t);
    auto* x = static_cast<float*>(inputs[0].mutable_data());
    for (int64_t i = 0; i < inputs[0].elements(); ++i) x[i] *= scale;
    x[(t.length + row) * t.channels + 1] = value;
    for (const std::string route : {"fft", "gemm"}) {
      const auto got = RunRoute(t, inputs, route);
      EXPECT_TRUE(got.ok()) << got.status();
      if (!got.ok()) return;
      const float* y = (*got)[0].as<float>();
      (route == "fft" ? fft : gemm).assign(y, y + (*got)[0].elements());
    }
  }
};

TEST(FftConv, InfinitiesAndNansLandWhereTheyBelongOnEveryIsa) {
  OnEveryIsa([] {
    const Case t{2, 300, 3, 20, 5};
    for (const float value : {kInfinity, -kInfinity, kNan, 3e38f}) {
      for (const int64_t row : {0, 140, 299}) {
        const Both both(t, value, row);
        ASSERT_EQ(both.fft.size(), both.gemm.size());
        for (size_t i = 0; i < both.fft.size(); ++i) {
          if (std::isfinite(both.gemm[i]) && std::abs(both.gemm[i]) < 1e30) {
            ASSERT_NEAR(both.fft[i], both.gemm[i], 2e-5) << value << " at " << row << ": " << i;
          } else if (std::isnan(both.gemm[i])) {
            ASSERT_TRUE(std::isnan(both.fft[i])) << value << " at " << row << ": " << i;
          } else {
            ASSERT_EQ(both.fft[i], both.gemm[i]) << value << " at " << row << ": " << i;
          }
        }
      }
    }
  });
}

// A value far above the others would cost them their digits.
TEST(FftConv, AWideRangeCostsNoDigits) {
  const Case t{2, 300, 3, 20, 5};
  for (const float value : {1e3f, 1e4f, 1e8f}) {
    const Both both(t, value, 150);
    for (size_t i = 0; i < both.fft.size(); ++i) {
      const double tolerance = std::abs(both.gemm[i]) < 50 ? 2e-5 : 1e-5 * value;
      ASSERT_NEAR(both.fft[i], both.gemm[i], tolerance) << value << ": " << i;
    }
  }
  // Numbers whose products come near the smallest that there are.
  const Both tiny(t, 1e-30f, 150, 1e-30f);
  for (size_t i = 0; i < tiny.fft.size(); ++i) ASSERT_FLOAT_EQ(tiny.fft[i], tiny.gemm[i]) << i;
}

TEST(FftConv, WindowsOfZerosGiveTheBiasExactlyOnEveryIsa) {
  OnEveryIsa([] {
    for (const Activation activation : {Activation::kNone, Activation::kRelu, Activation::kTanh}) {
      Case t{1, 260, 3, 20, 5};
      t.activation = activation;
      std::vector<Tensor> inputs = InputsOf(t);
      std::fill_n(static_cast<float*>(inputs[0].mutable_data()) + 100 * 3, 60 * 3, 0.0f);
      const auto got = RunRoute(t, inputs, "fft"), direct = RunRoute(t, inputs, "gemm");
      ASSERT_TRUE(got.ok() && direct.ok()) << got.status();
      for (int64_t i = 100 * 5; i < 141 * 5; ++i)
        ASSERT_EQ((*got)[0].as<float>()[i], (*direct)[0].as<float>()[i])
            << static_cast<int>(activation) << " " << i;
      EXPECT_NO_FATAL_FAILURE(ExpectNear(t, inputs, (*got)[0]));
    }
  });
}

std::vector<std::string> OffersFor(const Case& t, bool fft = true, float weight = 0) {
  std::vector<Tensor> inputs = InputsOf(t);
  if (weight != 0) static_cast<float*>(inputs[1].mutable_data())[4] = weight;
  RunOptions options;
  options.kernels.conv.fft = fft;
  options.const_mask = 6;
  return ConvOffers(AttrsOf(t), inputs, options);
}

TEST(FftConv, IsOfferedWhereItMayBeUsed) {
  using testing::Contains;
  using testing::Not;
  const Case t{1, 1343, 64, 20, 64};
  EXPECT_THAT(OffersFor(t), Contains("chosen fft"));
  EXPECT_THAT(OffersFor(t, false), Not(Contains("fft")));
  EXPECT_THAT(OffersFor(t, true, kInfinity), Not(Contains("fft")));
  EXPECT_THAT(OffersFor(t, true, 1e30f), Not(Contains("fft")));
  Case few = t;
  few.taps = 3;
  EXPECT_THAT(OffersFor(few), Not(Contains("fft")));
  // So few results that the sums themselves are cheaper.
  Case short_line = t;
  short_line.length = 21;
  EXPECT_THAT(OffersFor(short_line), Contains("chosen gemm"));
}

// Of all that the kernel keeps; the weights themselves are part of it.
int64_t FftBytesOf(const Case& t, double growth) {
  RunOptions options;
  options.const_mask = 6;
  options.kernels.routes["under_test"] = "fft";
  options.kernels.conv.fft_growth = growth;
  const auto made = MakeTestKernel("Conv2D", AttrsOf(t), InputsOf(t), options);
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? static_cast<int64_t>((*made)->kernel->PackedBytes()) : -1;
}

TEST(FftConv, TransformedWeightsAreCapped) {
  const int64_t direct = int64_t{12} * 256 * 256 * int64_t{sizeof(float)};
  const Case few_taps{1, 14000, 256, 12, 256};  // many points would be the fastest
  for (const int growth : {3, 4, 8}) {
    const int64_t bytes = FftBytesOf(few_taps, growth);
    EXPECT_GT(bytes, direct * 2 * growth / 3) << growth;
    EXPECT_LE(bytes, direct * (growth + 1)) << growth;
  }
}

TEST(FftConv, MemoryThatIsShortIsAnErrorWithTheWayOut) {
  const Case t{1, 1343, 64, 20, 64};
  const std::vector<Tensor> inputs = InputsOf(t);
  RunOptions options;
  options.const_mask = 6;
  const MemoryBudget budget(int64_t{1} << 20);
  const MemoryScope scope(budget);
  const auto made = MakeTestKernel("Conv2D", AttrsOf(t), inputs, options);
  EXPECT_EQ(made.status().code(), absl::StatusCode::kResourceExhausted) << made.status();
  EXPECT_THAT(std::string(made.status().message()), testing::HasSubstr("fft: off"));
}

}  // namespace
}  // namespace floe
