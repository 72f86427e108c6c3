#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "kernels/cpu/elementwise/unary_f32.h"
#include "kernels/cpu/every_isa_for_test.h"
#include "kernels/cpu/hwy_targets.h"
#include "kernels/cpu/kernel_test_util.h"

namespace floe {
namespace {

const float kNan = std::numeric_limits<float>::quiet_NaN();
const float kInf = std::numeric_limits<float>::infinity();

struct Case {
  const char* op;
  std::function<double(double)> reference;
  double relative;  // of the result
  double low = -9, high = 9;
};

const Case kCases[] = {
    {"Relu", [](double x) { return x < 0 ? 0 : x; }, 0},
    {"Relu6", [](double x) { return x < 0 ? 0 : std::min(x, 6.0); }, 0},
    {"Elu", [](double x) { return x < 0 ? std::expm1(x) : x; }, 2e-6},
    {"Selu",
     [](double x) { return 1.0507009873554805 * (x < 0 ? 1.6732632423543772 * std::expm1(x) : x); },
     2e-6},
    {"Sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }, 1e-6},
    {"Tanh", [](double x) { return std::tanh(x); }, 1e-6},
    {"Exp", [](double x) { return std::exp(x); }, 1e-6},
    {"Expm1", [](double x) { return std::expm1(x); }, 1e-6},
    {"Log", [](double x) { return std::log(x); }, 1e-6, 0.01, 9},
    {"Log1p", [](double x) { return std::log1p(x); }, 1e-6, -0.99, 9},
    {"Sin", [](double x) { return std::sin(x); }, 4e-7, -900, 900},
    {"Cos", [](double x) { return std::cos(x); }, 4e-7, -900, 900},
    {"Asin", [](double x) { return std::asin(x); }, 4e-7, -1, 1},
    {"Acos", [](double x) { return std::acos(x); }, 4e-7, -1, 1},
    {"Atan", [](double x) { return std::atan(x); }, 4e-7},
    {"Sqrt", [](double x) { return std::sqrt(x); }, 1e-7, 0, 9},
    {"Rsqrt", [](double x) { return 1 / std::sqrt(x); }, 2e-7, 0.01, 9},
    {"Square", [](double x) { return x * x; }, 1e-7},
    {"Neg", [](double x) { return -x; }, 0},
    {"Abs", [](double x) { return std::abs(x); }, 0},
    {"Softplus", [](double x) { return std::log1p(std::exp(x)); }, 1e-6, -30, 30},
    {"Softsign", [](double x) { return x / (1 + std::abs(x)); }, 2e-7},
    {"Erf", [](double x) { return std::erf(x); }, 1e-6},
    {"Erfc", [](double x) { return std::erfc(x); }, 1e-6},
    {"Gelu", [](double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }, 1e-5},
    {"GeluTanh",
     [](double x) { return x / (1 + std::exp(-1.5957691216057308 * (x + 0.044715 * x * x * x))); },
     1e-5},
    {"Mish", [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }, 1e-6},
    {"Floor", [](double x) { return std::floor(x); }, 0},
    {"Ceil", [](double x) { return std::ceil(x); }, 0},
    {"Round", [](double x) { return std::nearbyint(x); }, 0},
    {"Rint", [](double x) { return std::nearbyint(x); }, 0},
    {"Reciprocal", [](double x) { return 1 / x; }, 1e-7, 0.1, 9},
};

// Every ISA level against float64, for every tail length and misalignment, writing nothing outside
// [0, n).
TEST(UnaryF32, EveryIsaMatchesReference) {
  constexpr float kCanary = 12345.f;
  for (int64_t isa : IsasToTest()) {
    hwy::SetSupportedTargetsForTest(isa);
    for (const Case& c : kCases) {
      const auto fn = kernels::FindUnaryF32(c.op);
      ASSERT_NE(fn, nullptr) << c.op;
      for (size_t n : {0, 1, 7, 8, 9, 15, 16, 17, 33, 1000}) {
        for (size_t offset : {0, 1, 3}) {
          SCOPED_TRACE(testing::Message()
                       << hwy::TargetName(isa) << " " << c.op << " n=" << n << " off=" << offset);
          std::vector<float> x(offset + n), y(offset + n + 1, kCanary);
          for (size_t i = 0; i < x.size(); ++i) {
            x[i] = static_cast<float>(
                c.low + (c.high - c.low) * static_cast<double>((i * 7919 + n) % 1009) / 1009);
          }
          fn(x.data() + offset, y.data() + offset, n, 0);
          for (size_t i = 0; i < n; ++i) {
            const double want = c.reference(x[offset + i]);
            ASSERT_NEAR(y[offset + i], want, c.relative * std::abs(want)) << x[offset + i];
          }
          ASSERT_EQ(y[offset + n], kCanary);
        }
      }
    }
    hwy::SetSupportedTargetsForTest(0);
  }
}

// Element i gets the bits it would get anywhere else.
TEST(UnaryF32, BitsDoNotDependOnPlace) {
  for (int64_t isa : IsasToTest()) {
    hwy::SetSupportedTargetsForTest(isa);
    for (const Case& c : kCases) {
      const auto fn = kernels::FindUnaryF32(c.op);
      std::vector<float> x(67), all(67);
      for (size_t i = 0; i < x.size(); ++i) x[i] = 0.37f + 0.11f * static_cast<float>(i);
      fn(x.data(), all.data(), x.size(), 0);
      for (size_t i = 0; i < x.size(); ++i) {
        float alone;
        fn(&x[i], &alone, 1, 0);
        ASSERT_EQ(std::bit_cast<uint32_t>(alone), std::bit_cast<uint32_t>(all[i]))
            << hwy::TargetName(isa) << " " << c.op << " " << i;
      }
    }
    hwy::SetSupportedTargetsForTest(0);
  }
}

TEST(UnaryF32, SpecialValues) {
  for (int64_t isa : IsasToTest()) {
    hwy::SetSupportedTargetsForTest(isa);
    SCOPED_TRACE(hwy::TargetName(isa));
    const auto at = [](const char* op, float x, float alpha = 0) {
      float y;
      kernels::FindUnaryF32(op)(&x, &y, 1, alpha);
      return y;
    };
    for (const Case& c : kCases) {
      EXPECT_TRUE(std::isnan(at(c.op, kNan))) << c.op;
    }
    EXPECT_EQ(at("Relu", kInf), kInf);
    EXPECT_EQ(at("Relu", -kInf), 0);
    EXPECT_EQ(at("Elu", -kInf), -1);
    EXPECT_EQ(at("Softplus", kInf), kInf);
    EXPECT_EQ(at("Softplus", -kInf), 0);
    EXPECT_EQ(at("Softplus", 100), 100);
    EXPECT_NEAR(at("Softplus", -20), std::exp(-20.0), 1e-14);
    EXPECT_EQ(at("Expm1", -kInf), -1);
    EXPECT_EQ(at("Expm1", kInf), kInf);
    EXPECT_FLOAT_EQ(at("Expm1", 1e-6f), std::expm1(1e-6f));
    EXPECT_EQ(at("Log1p", -1), -kInf);
    EXPECT_TRUE(std::isnan(at("Log1p", -1.5f)));
    EXPECT_EQ(at("Log1p", kInf), kInf);
    EXPECT_FLOAT_EQ(at("Log1p", 3.3e38f), std::log1p(3.3e38f));
    EXPECT_EQ(at("Log1p", 1e-9f), 1e-9f);
    for (const char* op : {"Sin", "Cos"}) {
      const auto exact = [&](float x) { return op[0] == 'S' ? std::sin(x) : std::cos(x); };
      for (const float x : {29'999.0f, -30'001.0f, 1e9f, -3e38f})
        EXPECT_NEAR(at(op, x), exact(x), 3e-7) << op << " " << x;
      EXPECT_TRUE(std::isnan(at(op, kInf))) << op;
    }
    for (const char* op : {"Sin", "Asin", "Atan", "Expm1", "Log1p"}) {
      EXPECT_TRUE(at(op, -0.0f) == 0 && std::signbit(at(op, -0.0f))) << op;
      EXPECT_EQ(at(op, 1e-20f), 1e-20f) << op;
    }
    for (const char* op : {"Asin", "Acos"}) EXPECT_TRUE(std::isnan(at(op, 1.001f))) << op;
    EXPECT_EQ(at("Acos", 1), 0);
    EXPECT_FLOAT_EQ(at("Atan", -kInf), -1.5707963f);
    EXPECT_EQ(at("Rsqrt", 0), kInf);
    EXPECT_TRUE(std::isnan(at("Rsqrt", -1)));
    EXPECT_EQ(at("Rsqrt", kInf), 0);
    EXPECT_EQ(at("Round", 0.5f), 0);
    EXPECT_EQ(at("Round", 1.5f), 2);
    EXPECT_EQ(at("Round", 2.5f), 2);
    EXPECT_EQ(at("Round", -1.5f), -2);
    EXPECT_EQ(at("Floor", -0.5f), -1);
    EXPECT_EQ(at("Ceil", 1e30f), 1e30f);
    EXPECT_FLOAT_EQ(at("LeakyRelu", -2, 0.3f), -0.6f);
    EXPECT_EQ(at("LeakyRelu", 2, 0.3f), 2);
    EXPECT_FLOAT_EQ(at("Elu", -1e-4f), std::expm1(-1e-4f));
    hwy::SetSupportedTargetsForTest(0);
  }
}

template <class T>
std::vector<T> RunAs(const std::string& op, DType dtype, const std::vector<T>& x,
                     const Attrs& attrs = {}) {
  absl::StatusOr<std::vector<Tensor>> out = RunKernel(op, attrs, {Tensor::Vector(dtype, x)});
  EXPECT_TRUE(out.ok()) << out.status();
  if (!out.ok()) return {};
  return std::vector<T>((*out)[0].as<T>(), (*out)[0].as<T>() + x.size());
}

using Doubles = std::vector<double>;

TEST(Unary, Float64) {
  EXPECT_EQ(RunAs<double>("Relu", DType::kFloat64, {-1, 0, 2}), (Doubles{0, 0, 2}));
  EXPECT_EQ(RunAs<double>("Round", DType::kFloat64, {0.5, 1.5, -2.5}), (Doubles{0, 2, -2}));
  EXPECT_DOUBLE_EQ(RunAs<double>("Softplus", DType::kFloat64, {-40})[0], std::exp(-40.0));
  EXPECT_DOUBLE_EQ(RunAs<double>("Asinh", DType::kFloat64, {0.5})[0],
                   std::log(0.5 + std::sqrt(1.25)));
  EXPECT_DOUBLE_EQ(RunAs<double>("Atanh", DType::kFloat64, {0.5})[0], 0.5 * std::log(3.0));
  EXPECT_DOUBLE_EQ(RunAs<double>("Erf", DType::kFloat64, {0.5})[0], 0.5204998778130465);
  EXPECT_DOUBLE_EQ(RunAs<double>("Sigmoid", DType::kFloat64, {0})[0], 0.5);
}

TEST(Unary, Integers) {
  EXPECT_EQ(RunAs<int32_t>("Relu", DType::kInt32, {-1, 0, 7}), (std::vector<int32_t>{0, 0, 7}));
  EXPECT_EQ(RunAs<int32_t>("Neg", DType::kInt32, {-1, INT32_MIN}),
            (std::vector<int32_t>{1, INT32_MIN}));
  EXPECT_EQ(RunAs<int32_t>("Abs", DType::kInt32, {-5, 5, INT32_MIN}),
            (std::vector<int32_t>{5, 5, INT32_MIN}));
  EXPECT_EQ(RunAs<int64_t>("Square", DType::kInt64, {-3, 4}), (std::vector<int64_t>{9, 16}));
  EXPECT_EQ(RunAs<uint8_t>("Invert", DType::kUInt8, {0, 5}), (std::vector<uint8_t>{255, 250}));
  EXPECT_EQ(RunAs<int8_t>("Sign", DType::kInt8, {-100, 0, 3}), (std::vector<int8_t>{-1, 0, 1}));
  EXPECT_EQ(RunAs<int32_t>("Round", DType::kInt32, {-3, 4}), (std::vector<int32_t>{-3, 4}));
}

TEST(Unary, HalfIsComputedInFloat) {
  // 1.5 and -2 in float16 and bfloat16.
  EXPECT_EQ(RunAs<uint16_t>("Relu", DType::kFloat16, {0x3e00, 0xc000}),
            (std::vector<uint16_t>{0x3e00, 0}));
  EXPECT_EQ(RunAs<uint16_t>("Square", DType::kBFloat16, {0x3fc0, 0xc000}),
            (std::vector<uint16_t>{0x4010, 0x4080}));
}

TEST(Unary, TestsGiveBools) {
  const auto run = [](const char* op) {
    auto out = RunKernel(op, {}, {FloatTensor({4}, {1, kNan, kInf, -kInf})});
    EXPECT_EQ((*out)[0].dtype(), DType::kBool);
    const auto* p = (*out)[0].as<uint8_t>();
    return std::vector<int>(p, p + 4);
  };
  EXPECT_EQ(run("IsNan"), (std::vector<int>{0, 1, 0, 0}));
  EXPECT_EQ(run("IsInf"), (std::vector<int>{0, 0, 1, 1}));
  EXPECT_EQ(run("IsFinite"), (std::vector<int>{1, 0, 0, 0}));
  EXPECT_EQ(RunAs<uint8_t>("LogicalNot", DType::kBool, {0, 1}), (std::vector<uint8_t>{1, 0}));
}

TEST(Unary, ComplexAndEmptyAndScalar) {
  Tensor z = Tensor::Allocate(DType::kComplex64, Shape({1}));
  const float parts[] = {3, -4};
  std::memcpy(z.mutable_data(), parts, sizeof(parts));
  EXPECT_EQ((*RunKernel("ComplexAbs", {}, {z}))[0].as<float>()[0], 5);
  EXPECT_EQ((*RunKernel("Real", {}, {z}))[0].as<float>()[0], 3);
  EXPECT_EQ((*RunKernel("Imag", {}, {z}))[0].as<float>()[0], -4);
  EXPECT_EQ((*RunKernel("Conj", {}, {z}))[0].as<float>()[1], 4);
  EXPECT_EQ((*RunKernel("Relu", {}, {FloatTensor({0, 3}, {})}))[0].shape(), Shape({0, 3}));
  EXPECT_EQ((*RunKernel("Square", {}, {FloatTensor({}, {3})}))[0].as<float>()[0], 9);
}

TEST(Unary, ThreadsGiveTheSameBits) {
  std::vector<float> x(100003);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 1e-4f * static_cast<float>(i) - 5;
  const Tensor in = FloatTensor({100003}, x);
  const auto one = RunKernel("Tanh", {}, {in}), four = RunKernel("Tanh", {}, {in}, {.threads = 4});
  ASSERT_TRUE(one.ok() && four.ok());
  EXPECT_EQ(std::memcmp((*one)[0].data(), (*four)[0].data(), (*one)[0].bytes()), 0);
}

}  // namespace
}  // namespace floe
