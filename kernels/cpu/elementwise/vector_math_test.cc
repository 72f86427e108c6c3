#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/cpu/every_isa_for_test.h"
#include "kernels/cpu/hwy_targets.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise/vector_math_test.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

#include "kernels/cpu/elementwise/vector_math-inl.h"

#ifndef FLOE_VECTOR_MATH_FUNCTIONS  // once, not for each target
#define FLOE_VECTOR_MATH_FUNCTIONS
namespace floe::kernels {
enum Function {
  kExp,
  kExpm1,
  kExpm1UpToZero,
  kLog,
  kTanh,
  kSigmoid,
  kSoftplus,
  kErf,
  kErfc,
  kExpUpToZero,
  kGelu,
  kGeluTanh,
  kMish
};
}  // namespace floe::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace floe::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// y[i] = f(x[i]); n is a multiple of 64.
void Apply(int function, const float* x, float* y, size_t n) {
  const hn::ScalableTag<float> d;
  for (size_t i = 0; i < n; i += hn::Lanes(d)) {
    const auto v = hn::LoadU(d, x + i);
    switch (function) {
      case kExp:
        hn::StoreU(Exp(d, v), d, y + i);
        break;
      case kExpm1:
        hn::StoreU(Expm1(d, v), d, y + i);
        break;
      case kExpm1UpToZero:
        hn::StoreU(Expm1UpToZero(d, v), d, y + i);
        break;
      case kSoftplus:
        hn::StoreU(Softplus(d, v), d, y + i);
        break;
      case kLog:
        hn::StoreU(Log(d, v), d, y + i);
        break;
      case kTanh:
        hn::StoreU(Tanh(d, v), d, y + i);
        break;
      case kSigmoid:
        hn::StoreU(Sigmoid(d, v), d, y + i);
        break;
      case kErf:
        hn::StoreU(Erf(d, v), d, y + i);
        break;
      case kExpUpToZero:
        hn::StoreU(ExpUpToZero(d, v), d, y + i);
        break;
      case kGelu:
        hn::StoreU(Gelu(d, v), d, y + i);
        break;
      case kGeluTanh:
        hn::StoreU(GeluTanh(d, v), d, y + i);
        break;
      case kMish:
        hn::StoreU(Mish(d, v), d, y + i);
        break;
      default:
        hn::StoreU(Erfc(d, v), d, y + i);
        break;
    }
  }
}

}  // namespace floe::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace floe::kernels {
namespace {
HWY_EXPORT(Apply);

double Reference(int function, double x) {
  switch (function) {
    case kExp:
      return std::exp(x);
    case kExpm1:
    case kExpm1UpToZero:
      return std::expm1(x);
    case kSoftplus:
      return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
    case kLog:
      return std::log(x);
    case kTanh:
      return std::tanh(x);
    case kSigmoid:
      return 1 / (1 + std::exp(-x));
    case kErf:
      return std::erf(x);
    case kExpUpToZero:
      return std::exp(x);
    case kGelu:
      return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    case kGeluTanh:
      return x / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case kMish:
      return x * std::tanh(std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))));
    default:
      return std::erfc(x);
  }
}

constexpr double kFlushed = 1.5e-38;  // subnormals may be zero
constexpr double kKept = 2e-45;       // no, they are right to the last place but one

bool Matches(float y, double want, double tolerance, double least) {
  if (std::isnan(want)) return std::isnan(y);
  if (std::abs(want) > std::numeric_limits<float>::max()) return y == static_cast<float>(want);
  return std::abs(y - want) <= tolerance * std::abs(want) + least;
}

void ExpectClose(int function, const std::vector<float>& x, double tolerance = 1e-6,
                 double least = kFlushed) {
  for (int64_t isa : IsasToTest()) {
    hwy::SetSupportedTargetsForTest(isa);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    std::vector<float> padded = x;
    padded.resize((x.size() + 63) / 64 * 64, 1.0f);
    std::vector<float> y(padded.size());
    HWY_DYNAMIC_DISPATCH(Apply)(function, padded.data(), y.data(), padded.size());
    for (size_t i = 0; i < x.size(); ++i) {
      const double want = Reference(function, x[i]);
      ASSERT_TRUE(Matches(y[i], want, tolerance, least))
          << hwy::TargetName(isa) << " function " << function << " x=" << x[i] << ": " << y[i]
          << " is not " << want;
    }
    hwy::SetSupportedTargetsForTest(0);
  }
}

std::vector<float> Range(double low, double high, int count) {
  std::vector<float> x;
  for (int i = 0; i <= count; ++i) x.push_back(static_cast<float>(low + (high - low) * i / count));
  return x;
}

const float kInf = std::numeric_limits<float>::infinity();
const std::vector<float> kSpecial = {
    0.0f,   -0.0f,   kInf,    -kInf, std::numeric_limits<float>::quiet_NaN(),
    1e-30f, -1e-30f, 1.0f,    -1.0f, 1e30f,
    -1e30f, 3.4e38f, -3.4e38f};

TEST(VectorMath, EveryIsaMatchesFloat64) {
  for (int function : {kExp, kTanh, kSigmoid, kErf, kErfc}) {
    ExpectClose(function, Range(-110, 110, 100000));
    ExpectClose(function, Range(-5, 5, 100000));
    ExpectClose(function, Range(-0.01, 0.01, 1000));
    ExpectClose(function, kSpecial);
  }
}

// Every exponent of a float, subnormals too, with both signs.
std::vector<float> AllExponents() {
  std::vector<float> x;
  for (int e = -149; e < 128; ++e) {
    for (double m : {1.0, 1.2, 1.4142, 1.5, 1.9999}) {
      x.push_back(static_cast<float>(std::ldexp(m, e)));
      x.push_back(-x.back());
    }
  }
  return x;
}

std::vector<float> UpToZero(std::vector<float> x) {
  for (float& value : x) value = -std::abs(value);
  return x;
}

TEST(VectorMath, Expm1IsRightToSomeUnitsOfTheLastPlace) {
  // 1.2e-7 are between one and two of them.
  for (const std::vector<float>& x :
       {Range(-20, 89, 400000), Range(-1, 1, 400000), AllExponents(), kSpecial}) {
    ExpectClose(kExpm1, x, 1.2e-7, kKept);
    ExpectClose(kExpm1UpToZero, UpToZero(x), 1.2e-7, kKept);
    ExpectClose(kTanh, x, 2e-7, kKept);
    ExpectClose(kSoftplus, x, 2.5e-7);
  }
  ExpectClose(kSoftplus, Range(-88, 88, 400000), 2.5e-7);
}

TEST(VectorMath, ExpUpToZeroIsZeroBelowNormalNumbers) {
  ExpectClose(kExpUpToZero, Range(-87.3, 0, 100000));
  ExpectClose(kExpUpToZero, {-kInf, std::numeric_limits<float>::quiet_NaN(), -0.0f, -100.0f,
                             -3.4e38f, -1e9f, -88.0f});
}

TEST(VectorMath, GeluMatchesFloat64) {
  ExpectClose(kGelu, Range(-3, 110, 200000));
  ExpectClose(kGelu, Range(-13, -3, 100000), 1e-5);
  ExpectClose(kGelu, kSpecial);
  ExpectClose(kGeluTanh, Range(-2, 110, 200000));
  ExpectClose(kGeluTanh, Range(-9.9, -2, 100000), 2e-5);
  ExpectClose(kGeluTanh, kSpecial);
}

TEST(VectorMath, MishMatchesFloat64) {
  ExpectClose(kMish, Range(-87, 110, 300000));
  ExpectClose(kMish, kSpecial);
}

TEST(VectorMath, LogMatchesFloat64OverAllExponents) {
  ExpectClose(kLog, kSpecial);
  ExpectClose(kLog, Range(0.001, 4, 100000));
  ExpectClose(kLog, AllExponents());
}

TEST(VectorMath, ExpIsZeroOrInfiniteBeyondFloat) {
  ExpectClose(kExp, {-104.0f, -200.0f, 88.72f, 88.73f, 100.0f});
}

TEST(VectorMath, Expm1TanhAndErfKeepTheSignOfZero) {
  std::vector<float> x(64, -0.0f), y(64);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  for (int function : {kExpm1, kTanh, kErf}) {
    HWY_DYNAMIC_DISPATCH(Apply)(function, x.data(), y.data(), x.size());
    EXPECT_TRUE(std::signbit(y[0])) << function;
  }
}

}  // namespace
}  // namespace floe::kernels
#endif
