// Against float64, in ulps of the exact result.
#include "kernels/cuda/math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace floe::cuda {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

double Ulps(float got, double exact) {
  const double size = std::abs(exact);
  const int exponent = size == 0 ? -149 : std::max(std::ilogb(size) - 23, -149);
  return std::abs(got - exact) / std::ldexp(1.0, exponent);
}

struct Worst {
  double ulps = 0;
  float at = 0;
};

// Over numbers that lie close in [low, high] and close to 0.
template <class Function, class Exact>
Worst WorstOf(const Function& function, const Exact& exact, float low, float high) {
  Worst worst;
  const auto check = [&](float x) {
    const double ulps = Ulps(function(x), exact(static_cast<double>(x)));
    if (!(ulps <= worst.ulps)) worst = {ulps, x};
  };
  constexpr int kSteps = 400000;
  for (int i = 0; i <= kSteps; ++i) {
    check(static_cast<float>(low + (static_cast<double>(high) - low) * i / kSteps));
  }
  for (double size = 1e-44; size < 1e38; size *= 1.001) {
    if (size < high) check(static_cast<float>(std::max<double>(low, size)));
    if (-size > low) check(static_cast<float>(std::min<double>(high, -size)));
  }
  return worst;
}

#define EXPECT_WITHIN(ulps_, function, exact, low, high)                                          \
  do {                                                                                            \
    const Worst worst =                                                                           \
        WorstOf([](float x) { return function(x); }, [](double x) { return exact; }, low, high);  \
    EXPECT_LE(worst.ulps, ulps_) << #function << "(" << worst.at << ") = " << function(worst.at); \
    RecordProperty(#function, std::to_string(worst.ulps));                                        \
  } while (false)

TEST(MathTest, IsAsExactAsItsHeaderSays) {
  EXPECT_WITHIN(2, Exp, std::exp(x), -104.0f, 88.7228f);
  EXPECT_WITHIN(2, Expm1, std::expm1(x), -104.0f, 88.7228f);
  EXPECT_WITHIN(2, Log, std::log(x), 1e-45f, 3.4e38f);
  EXPECT_WITHIN(2, Log, std::log(x), 0.5f, 2.0f);
  EXPECT_WITHIN(2, Log1p, std::log1p(x), -0.999f, 100.0f);
  EXPECT_WITHIN(2, Log1p, std::log1p(x), -0.3f, 0.5f);
  EXPECT_WITHIN(3, Tanh, std::tanh(x), -12.0f, 12.0f);
  EXPECT_WITHIN(3, Tanh, std::tanh(x), -0.5f, 0.5f);
  EXPECT_WITHIN(3, Sigmoid, 1 / (1 + std::exp(-x)), -100.0f, 100.0f);
  EXPECT_WITHIN(3, Softplus, std::log1p(std::exp(x)), -100.0f, 100.0f);
  EXPECT_WITHIN(3, Erf, std::erf(x), -6.0f, 6.0f);
  EXPECT_WITHIN(3, Erf, std::erf(x), -1.2f, 1.2f);
  EXPECT_WITHIN(6, Erfc, std::erfc(x), -6.0f, 11.0f);
}

#define EXPECT_SAME(function, exact)                                                              \
  do {                                                                                            \
    for (const float x : {0.0f, -0.0f, kInf, -kInf, kNan, 1e-45f, -1e-45f, 3.4e38f, -3.4e38f}) {  \
      const float want = static_cast<float>(exact);                                               \
      const float got = function(x);                                                              \
      if (std::isnan(want)) {                                                                     \
        EXPECT_TRUE(std::isnan(got)) << #function << "(" << x << ") = " << got;                   \
      } else {                                                                                    \
        EXPECT_EQ(BitsOfFloat(got), BitsOfFloat(want)) << #function << "(" << x << ") = " << got; \
      }                                                                                           \
    }                                                                                             \
  } while (false)

TEST(MathTest, SpecialNumbersAreThoseOfC) {
  EXPECT_SAME(Exp, std::exp(static_cast<double>(x)));
  EXPECT_SAME(Expm1, std::expm1(static_cast<double>(x)));
  EXPECT_SAME(Log, std::log(static_cast<double>(x)));
  EXPECT_SAME(Log1p, std::log1p(static_cast<double>(x)));
  EXPECT_SAME(Tanh, std::tanh(static_cast<double>(x)));
  EXPECT_SAME(Sigmoid, 1 / (1 + std::exp(-static_cast<double>(x))));
  EXPECT_SAME(Erf, std::erf(static_cast<double>(x)));
  EXPECT_SAME(Erfc, std::erfc(static_cast<double>(x)));
  EXPECT_SAME(Sqrt, std::sqrt(static_cast<double>(x)));
  EXPECT_SAME(Abs, std::abs(static_cast<double>(x)));
  EXPECT_EQ(Softplus(-kInf), 0);
  EXPECT_EQ(Softplus(kInf), kInf);
  EXPECT_TRUE(std::isnan(Softplus(kNan)));
  EXPECT_EQ(Log1p(-1.0f), -kInf);
  EXPECT_TRUE(std::isnan(Log1p(-2.0f)));
}

TEST(MathTest, MaxAndMinKeepNaN) {
  EXPECT_TRUE(std::isnan(Max(kNan, 1)));
  EXPECT_TRUE(std::isnan(Max(1, kNan)));
  EXPECT_TRUE(std::isnan(Min(kNan, 1)));
  EXPECT_TRUE(std::isnan(Min(1, kNan)));
  EXPECT_EQ(Max(-kInf, 2), 2);
  EXPECT_EQ(Min(kInf, 2), 2);
}

}  // namespace
}  // namespace floe::cuda
