#include "kernels/cpu/conv/winograd_conv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/memory_budget.h"
#include "kernels/cpu/conv/conv_routes_for_test.h"
#include "kernels/cpu/every_isa_for_test.h"
#include "kernels/cpu/gemm/activation.h"
#include "kernels/cpu/hwy_targets.h"
#include "kernels/cpu/kernel_test_util.h"

namespace floe {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// A form by its route, and its filter. `error`: the most against float64, as a part of the sum of
// |x||w|, for values of about one size; direct sums of as many terms make about 2e-7.
struct FormCase {
  const char* route;
  int64_t tile_h, tile_w, taps_h, taps_w;
  double error;
};
constexpr FormCase kForms[] = {
    {"winograd4x4", 4, 4, 3, 3, 8e-7}, {"winograd2x2", 2, 2, 3, 3, 4e-7},
    {"winograd4x4", 4, 4, 5, 5, 2e-6}, {"winograd2x2", 2, 2, 5, 5, 6e-7},
    {"winograd1x4", 1, 4, 1, 3, 5e-7}, {"winograd4x1", 4, 1, 3, 1, 5e-7},
    {"winograd1x4", 1, 4, 1, 5, 5e-7}, {"winograd4x1", 4, 1, 5, 1, 5e-7},
    {"winograd1x2", 1, 2, 1, 7, 5e-7}, {"winograd2x1", 2, 1, 7, 1, 5e-7},
};

struct Case {
  FormCase form;
  int64_t images, height, width, channels, columns;
  std::string padding = "SAME";
  Activation activation = Activation::kNone;
  bool bias = true;
};

// Zeros before and behind the image, and the size of the result.
struct Side {
  int64_t before, out;
  Side(const std::string& padding, int64_t in, int64_t taps, int64_t low, int64_t high)
      : before(padding == "SAME"       ? (taps - 1) / 2
               : padding == "EXPLICIT" ? low
                                       : 0),
        out(padding == "SAME" ? in : in - taps + 1 + before + (padding == "EXPLICIT" ? high : 0)) {}
};
Side SideH(const Case& t) { return {t.padding, t.height, t.form.taps_h, 4, 1}; }
Side SideW(const Case& t) { return {t.padding, t.width, t.form.taps_w, 0, 3}; }

Attrs AttrsOf(const Case& t) {
  Attrs attrs;
  attrs.Set("strides", std::vector<int64_t>{1, 1, 1, 1});
  attrs.Set("padding", t.padding);
  attrs.Set("data_format", std::string("NHWC"));
  SetEpilogue({.activation = t.activation, .bias = t.bias ? 2 : -1}, &attrs);
  if (t.padding == "EXPLICIT")
    attrs.Set("explicit_paddings", std::vector<int64_t>{0, 0, 4, 1, 0, 3, 0, 0});
  return attrs;
}

std::vector<Tensor> InputsOf(const Case& t) {
  std::vector<Tensor> inputs = {
      RandomTensor({t.images, t.height, t.width, t.channels}, 1),
      RandomTensor({t.form.taps_h, t.form.taps_w, t.channels, t.columns}, 2)};
  if (t.bias) inputs.push_back(RandomTensor({t.columns}, 3));
  return inputs;
}

absl::StatusOr<std::vector<Tensor>> RunRoute(const Case& t, const std::vector<Tensor>& inputs,
                                             const std::string& route, int threads = 1,
                                             uint64_t const_mask = 6) {
  RunOptions options;
  options.kernels.routes["under_test"] = route;
  options.threads = threads;
  options.const_mask = t.bias ? const_mask : 2;
  return RunKernel("Conv2D", AttrsOf(t), inputs, options);
}

// An output by its definition in float64, and the sum of its terms' absolute values.
struct Sum {
  double value = 0, absolute = 0;
};
Sum SumOf(const Case& t, const std::vector<Tensor>& inputs, int64_t n, int64_t y, int64_t x,
          int64_t column) {
  Sum sum;
  const auto add = [&](double term) {
    sum.value += term;
    sum.absolute += std::abs(term);
  };
  for (int64_t i = 0; i < t.form.taps_h; ++i) {
    for (int64_t j = 0; j < t.form.taps_w; ++j) {
      const int64_t iy = y + i - SideH(t).before, ix = x + j - SideW(t).before;
      if (iy < 0 || ix < 0 || iy >= t.height || ix >= t.width) continue;
      const float* pixel =
          inputs[0].as<float>() + ((n * t.height + iy) * t.width + ix) * t.channels;
      const float* weights =
          inputs[1].as<float>() + (i * t.form.taps_w + j) * t.channels * t.columns + column;
      for (int64_t c = 0; c < t.channels; ++c)
        add(static_cast<double>(pixel[c]) * weights[c * t.columns]);
    }
  }
  if (t.bias) add(inputs[2].as<float>()[column]);
  return sum;
}

constexpr double kMeanTerm = 0.25;  // the mean of |x||w|, both even in [-1, 1)

// Within twice the bound of what the absolute values of a whole window add up to, also at an edge,
// where the tile has more terms than the window.
void ExpectNear(const Case& t, const std::vector<Tensor>& inputs, const Tensor& got) {
  const int64_t height = SideH(t).out, width = SideW(t).out;
  ASSERT_EQ(got.shape(), (Shape{t.images, height, width, t.columns}));
  const Epilogue epilogue{.activation = t.activation};
  const double terms = static_cast<double>(t.form.taps_h * t.form.taps_w * t.channels);
  const float* value = got.as<float>();
  for (int64_t n = 0; n < t.images; ++n) {
    for (int64_t y = 0; y < height; ++y) {
      for (int64_t x = 0; x < width; ++x) {
        for (int64_t column = 0; column < t.columns; ++column, ++value) {
          const Sum sum = SumOf(t, inputs, n, y, x, column);
          const double tolerance = 2 * t.form.error * terms * kMeanTerm + 2e-6;
          ASSERT_NEAR(*value, kernels::ActivatePlain(epilogue, sum.value), tolerance)
              << "pixel " << y << "," << x << " of image " << n << ", column " << column;
        }
      }
    }
  }
}

void ExpectConv(const Case& t, int threads = 1, uint64_t const_mask = 6) {
  SCOPED_TRACE(testing::Message() << t.form.route << " of " << t.form.taps_h << "x" << t.form.taps_w
                                  << ": " << t.images << "x" << t.height << "x" << t.width << "x"
                                  << t.channels << " to " << t.columns << " " << t.padding << " "
                                  << static_cast<int>(t.activation));
  const std::vector<Tensor> inputs = InputsOf(t);
  const auto got = RunRoute(t, inputs, t.form.route, threads, const_mask);
  ASSERT_TRUE(got.ok()) << got.status();
  ExpectNear(t, inputs, (*got)[0]);
}

TEST(WinogradConv, OddSizesOnEveryIsa) {
  OnEveryIsa([] {
    for (const FormCase& form : kForms) {
      for (const std::string padding : {"VALID", "SAME", "EXPLICIT"}) {
        for (int64_t channels : {1, 3, 17, 64}) {
          ASSERT_NO_FATAL_FAILURE(
              ExpectConv({form, 2, 7, 10, channels, 5, padding, Activation::kRelu}));
          ASSERT_NO_FATAL_FAILURE(ExpectConv({form, 1, 9, 7, 4, channels, padding}));
        }
      }
    }
  });
}

TEST(WinogradConv, SizesAroundTheTile) {
  for (const FormCase& form : kForms) {
    for (int64_t height = form.taps_h; height < form.taps_h + 9; ++height) {
      for (const int64_t width : {form.taps_w, form.taps_w + 1, form.taps_w + 7}) {
        // VALID from one result on.
        ASSERT_NO_FATAL_FAILURE(ExpectConv({form, 1, height, width, 5, 19, "VALID"}));
      }
    }
    ASSERT_NO_FATAL_FAILURE(ExpectConv({form, 2, 1, 1, 6, 7, "SAME"}));
    ASSERT_NO_FATAL_FAILURE(ExpectConv({form, 1, 70, 60, 3, 5, "SAME"}));
    ASSERT_NO_FATAL_FAILURE(ExpectConv({form, 1, 8, 9, 300, 130, "SAME"}));
  }
}

TEST(WinogradConv, EveryActivationOnEveryIsa) {
  OnEveryIsa([] {
    for (const FormCase& form : kForms) {
      for (const Activation activation :
           {Activation::kNone, Activation::kRelu, Activation::kRelu6, Activation::kSigmoid,
            Activation::kTanh, Activation::kElu, Activation::kLeakyRelu, Activation::kSwish}) {
        Case t{form, 1, 5, 6, 8, 18, "SAME", activation};
        ASSERT_NO_FATAL_FAILURE(ExpectConv(t));
        t.bias = false;
        ASSERT_NO_FATAL_FAILURE(ExpectConv(t));
      }
    }
  });
}

TEST(WinogradConv, ABiasThatIsNotConstant) {
  for (const FormCase& form : kForms)
    EXPECT_NO_FATAL_FAILURE(ExpectConv({form, 2, 5, 6, 8, 18, "SAME", Activation::kRelu}, 1, 2));
}

// Tiles by the transform, without data under some places, and with an infinity.
TEST(WinogradConv, ResidualsAreAddedBeforeTheActivation) {
  for (const FormCase& form : kForms) {
    for (const Activation activation : {Activation::kNone, Activation::kRelu, Activation::kTanh}) {
      const Case t{form, 2, 23, 19, 4, 21};
      std::vector<Tensor> inputs = InputsOf(t);
      auto* x = static_cast<float*>(inputs[0].mutable_data());
      std::fill_n(x, 12 * 19 * 4, 0.0f);
      x[(20 * 19 + 3) * 4] = kInfinity;
      const auto sums = RunRoute(t, inputs, form.route);
      ASSERT_TRUE(sums.ok()) << sums.status();
      ASSERT_NO_FATAL_FAILURE(
          ExpectResidualAdded(AttrsOf(t), inputs, form.route, activation, (*sums)[0]));
    }
  }
}

// Error against float64 of sums of many terms, as a part of the sum of their absolute values.
double LargestError(const Case& t, const std::vector<Tensor>& inputs, const Tensor& got) {
  double largest = 0;
  const float* value = got.as<float>();
  for (int64_t y = 0; y < t.height; ++y) {
    for (int64_t x = 0; x < t.width; ++x) {
      for (int64_t column = 0; column < t.columns; ++column, ++value) {
        const Sum sum = SumOf(t, inputs, 0, y, x, column);
        largest = std::max(largest, std::abs(*value - sum.value) / sum.absolute);
      }
    }
  }
  return largest;
}

// The tile's other values count too, so this holds for values of about one size.
TEST(WinogradConv, ErrorsAreBoundedByTheSumOfAbsoluteValuesOnEveryIsa) {
  OnEveryIsa([] {
    for (const FormCase& form : kForms) {
      Case t{form, 1, 12, 12, 128, 24, "SAME"};
      t.bias = false;
      std::vector<Tensor> inputs = InputsOf(t);
      for (const bool positive : {false, true}) {
        auto* x = static_cast<float*>(inputs[0].mutable_data());
        for (int64_t i = 0; positive && i < inputs[0].elements(); ++i) x[i] = std::abs(x[i]);
        const auto got = RunRoute(t, inputs, form.route);
        ASSERT_TRUE(got.ok()) << got.status();
        EXPECT_LT(LargestError(t, inputs, (*got)[0]), form.error)
            << form.route << " of " << form.taps_h;
      }
    }
  });
}

// Bits of one image do not change with the others, nor with threads.
TEST(WinogradConv, ImagesAreComputedAloneOnEveryIsa) {
  OnEveryIsa([] {
    for (const FormCase& form : kForms) {
      // Images that share a block, and images of some blocks, which are worth a thread.
      for (const int64_t size : {5, 31}) {
        const Case many{form, 5, size, size + 2, 40, 51, "SAME", Activation::kRelu};
        const std::vector<Tensor> inputs = InputsOf(many);
        const auto together = RunRoute(many, inputs, form.route, 3);
        ASSERT_TRUE(together.ok()) << together.status();
        Case one = many;
        one.images = 1;
        const int64_t in = size * (size + 2) * 40, out = size * (size + 2) * 51;
        for (int64_t image = 0; image < 5; ++image) {
          std::vector<Tensor> alone = InputsOf(one);
          std::memcpy(alone[0].mutable_data(), inputs[0].as<float>() + image * in,
                      in * sizeof(float));
          const auto got = RunRoute(one, alone, form.route);
          ASSERT_TRUE(got.ok()) << got.status();
          const auto *a = (*got)[0].as<uint32_t>(),
                     *b = (*together)[0].as<uint32_t>() + image * out;
          EXPECT_TRUE(std::equal(a, a + out, b)) << form.route << " image " << image;
        }
      }
    }
  });
}

// Results of both routes for data with `value` at one pixel of image 1.
struct Both {
  std::vector<float> winograd, gemm;
  Both(const Case& t, float value, int64_t pixel, float scale = 1) {
    std::vector<Tensor> inputs = InputsOf(t);
    auto* x = static_cast<float*>(inputs[0].mutable_data());
    for (int64_t i = 0; i < inputs[0].elements(); ++i) x[i] *= scale;
    x[(t.height * t.width + pixel) * t.channels + 1] = value;
    for (const char* name : {t.form.route, "gemm"}) {
      const std::string route = name;
      const auto got = RunRoute(t, inputs, route);
      EXPECT_TRUE(got.ok()) << got.status();
      if (!got.ok()) return;
      const float* y = (*got)[0].as<float>();
      (route == "gemm" ? gemm : winograd).assign(y, y + (*got)[0].elements());
    }
  }
};

TEST(WinogradConv, InfinitiesAndNansLandWhereTheyBelongOnEveryIsa) {
  OnEveryIsa([] {
    for (const FormCase& form : kForms) {
      const Case t{form, 2, 11, 13, 3, 20};
      for (const float value : {kInfinity, -kInfinity, kNan, 3e38f}) {
        for (const int64_t pixel : {0, 58, 142}) {
          const Both both(t, value, pixel);
          ASSERT_EQ(both.winograd.size(), both.gemm.size());
          for (size_t i = 0; i < both.winograd.size(); ++i) {
            if (std::isfinite(both.gemm[i]) && std::abs(both.gemm[i]) < 1e30) {
              ASSERT_NEAR(both.winograd[i], both.gemm[i], 5e-5) << value << " at " << pixel;
            } else if (std::isnan(both.gemm[i])) {
              ASSERT_TRUE(std::isnan(both.winograd[i])) << value << " at " << pixel << ": " << i;
            } else {
              ASSERT_EQ(both.winograd[i], both.gemm[i]) << value << " at " << pixel << ": " << i;
            }
          }
        }
      }
    }
  });
}

// A value far above the others would cost them their digits.
TEST(WinogradConv, AWideRangeCostsNoDigits) {
  for (const FormCase& form : kForms) {
    const Case t{form, 2, 11, 13, 3, 20};
    for (const float value : {30.0f, 1e3f, 1e4f, 1e8f}) {
      const Both both(t, value, 58);
      for (int64_t i = 0; i < static_cast<int64_t>(both.winograd.size()); ++i) {
        const int64_t at = i / 20 - 11 * 13;  // the pixel is 4, 6 of the second image
        const bool under = at >= 0 && std::abs(at / 13 - 4) <= form.taps_h / 2 &&
                           std::abs(at % 13 - 6) <= form.taps_w / 2;
        const bool direct = value > kernels::kWinogradRange && !under;
        ASSERT_NEAR(both.winograd[i], both.gemm[i],
                    direct ? 25 * form.error : 10 * form.error * value)
            << form.route << " " << value << ": " << i;
      }
    }
    // Numbers whose products come near the smallest that there are.
    Case tiny_case = t;
    tiny_case.bias = false;
    const Both tiny(tiny_case, 1e-30f, 58, 1e-30f);
    for (size_t i = 0; i < tiny.winograd.size(); ++i)
      ASSERT_NEAR(tiny.winograd[i], tiny.gemm[i], 1e-35) << i;
  }
}

TEST(WinogradConv, WindowsOfZerosGiveTheBiasExactlyOnEveryIsa) {
  OnEveryIsa([] {
    for (const FormCase& form : kForms) {
      for (const Activation activation :
           {Activation::kNone, Activation::kRelu, Activation::kTanh}) {
        const Case t{form, 1, 16, 14, 3, 5, "VALID", activation};
        std::vector<Tensor> inputs = InputsOf(t);
        auto* x = static_cast<float*>(inputs[0].mutable_data());
        std::fill_n(x + 4 * 14 * 3, 7 * 14 * 3, 0.0f);  // rows 4 to 10
        const auto got = RunRoute(t, inputs, form.route), direct = RunRoute(t, inputs, "gemm");
        ASSERT_TRUE(got.ok() && direct.ok()) << got.status();
        const int64_t row = SideW(t).out * 5;
        for (int64_t i = 4 * row; i < (12 - form.taps_h) * row; ++i)
          ASSERT_EQ((*got)[0].as<float>()[i], (*direct)[0].as<float>()[i])
              << static_cast<int>(activation) << " " << i;
        EXPECT_NO_FATAL_FAILURE(ExpectNear(t, inputs, (*got)[0]));
      }
    }
  });
}

std::vector<std::string> OffersFor(const Case& t, const Attrs& attrs, float weight = 0,
                                   uint64_t const_mask = 6) {
  std::vector<Tensor> inputs = InputsOf(t);
  if (weight != 0) static_cast<float*>(inputs[1].mutable_data())[4] = weight;
  RunOptions options;
  options.const_mask = const_mask;
  return ConvOffers(attrs, inputs, options);
}

TEST(WinogradConv, IsOfferedWhereItMayBeUsed) {
  using testing::Contains;
  using testing::Not;
  const Case t{kForms[0], 1, 28, 28, 64, 64};
  const Attrs attrs = AttrsOf(t);
  EXPECT_THAT(OffersFor(t, attrs), Contains("chosen winograd4x4"));
  EXPECT_THAT(OffersFor(t, attrs, kInfinity), Not(Contains("winograd4x4")));
  EXPECT_THAT(OffersFor(t, attrs, 1e30f), Not(Contains("winograd4x4")));
  EXPECT_THAT(OffersFor(t, attrs, 0, 0), Not(Contains("winograd4x4")));
  for (const char* what : {"strides", "dilations"}) {
    Attrs other = attrs;
    other.Set(what, std::vector<int64_t>{1, 2, 1, 1});
    EXPECT_THAT(OffersFor(t, other), Not(Contains("winograd4x4"))) << what;
  }
  // Too few channels to pay for the transforms.
  const Case thin{kForms[0], 1, 28, 28, 3, 16};
  EXPECT_THAT(OffersFor(thin, AttrsOf(thin)), Contains("chosen gemm"));
}

TEST(WinogradConv, TransformedWeightsAreCapped) {
  const Case large{kForms[0], 1, 28, 28, 1400, 1400};
  EXPECT_THAT(OffersFor(large, AttrsOf(large)), testing::Not(testing::Contains("winograd4x4")));
}

TEST(WinogradConv, PackedBytesAreTheTransformedWeights) {
  const Case t{kForms[0], 1, 28, 28, 64, 64};
  RunOptions options;
  options.const_mask = 6;
  options.kernels.routes["under_test"] = "winograd4x4";
  const auto made = MakeTestKernel("Conv2D", AttrsOf(t), InputsOf(t), options);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ((*made)->kernel->PackedBytes(), size_t{36} * 64 * 64 * sizeof(float));
}

TEST(WinogradConv, MemoryThatIsShortIsAnErrorWithTheWayOut) {
  const Case t{kForms[0], 1, 28, 28, 128, 128};
  const std::vector<Tensor> inputs = InputsOf(t);
  RunOptions options;
  options.const_mask = 6;
  const MemoryBudget budget(int64_t{1} << 20);
  const MemoryScope scope(budget);
  const auto made = MakeTestKernel("Conv2D", AttrsOf(t), inputs, options);
  EXPECT_EQ(made.status().code(), absl::StatusCode::kResourceExhausted) << made.status();
  EXPECT_THAT(std::string(made.status().message()), testing::HasSubstr("--route NODE=gemm"));
}

}  // namespace
}  // namespace floe
