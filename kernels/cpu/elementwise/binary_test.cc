#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "kernels/cpu/elementwise/binary_f32.h"
#include "kernels/cpu/every_isa_for_test.h"
#include "kernels/cpu/hwy_targets.h"
#include "kernels/cpu/kernel_test_util.h"

namespace floe {
namespace {

const float kNan = std::numeric_limits<float>::quiet_NaN();
const float kInf = std::numeric_limits<float>::infinity();

struct Case {
  const char* op;
  std::function<double(double, double)> reference;
};
const Case kCases[] = {
    {"Add", [](double a, double b) { return a + b; }},
    {"Sub", [](double a, double b) { return a - b; }},
    {"Mul", [](double a, double b) { return a * b; }},
    {"RealDiv", [](double a, double b) { return a / b; }},
    {"Maximum", [](double a, double b) { return std::max(a, b); }},
    {"Minimum", [](double a, double b) { return std::min(a, b); }},
    {"SquaredDifference", [](double a, double b) { return (a - b) * (a - b); }},
    {"DivNoNan", [](double a, double b) { return a / b; }},
    {"FloorDiv", [](double a, double b) { return std::floor(static_cast<float>(a / b)); }},
    {"Atan2", [](double a, double b) { return std::atan2(a, b); }},
};

TEST(BinaryF32, EveryIsaMatchesReference) {
  constexpr float kCanary = 12345.f;
  for (int64_t isa : IsasToTest()) {
    hwy::SetSupportedTargetsForTest(isa);
    for (const Case& c : kCases) {
      const kernels::BinaryF32Set fns = kernels::FindBinaryF32(c.op);
      ASSERT_NE(fns.vectors, nullptr) << c.op;
      for (size_t n : {0, 1, 7, 8, 9, 15, 16, 17, 33, 200}) {
        std::vector<float> a(n + 1), b(n + 1), y(n + 1, kCanary), yb(y), ya(y);
        for (size_t i = 0; i <= n; ++i) {
          a[i] = static_cast<float>((i * 37 + n) % 101) / 7 - 6;
          b[i] = static_cast<float>((i * 53 + 5) % 97) / 9 + 0.5f;
        }
        fns.vectors(a.data(), b.data(), y.data(), n);
        fns.scalar_b(a.data(), b.data(), yb.data(), n);
        fns.scalar_a(a.data(), b.data(), ya.data(), n);
        for (size_t i = 0; i < n; ++i) {
          SCOPED_TRACE(testing::Message()
                       << hwy::TargetName(isa) << " " << c.op << " n=" << n << " i=" << i);
          // (a - b)^2 rounds twice and cancels.
          const double slack = 3e-7 * (std::abs(double(a[i])) + std::abs(double(b[i]))) * 10;
          ASSERT_NEAR(y[i], c.reference(a[i], b[i]), slack);
          ASSERT_NEAR(yb[i], c.reference(a[i], b[0]), slack);
          ASSERT_NEAR(ya[i], c.reference(a[0], b[i]), slack);
        }
        ASSERT_EQ(y[n], kCanary);
        ASSERT_EQ(yb[n], kCanary);
        ASSERT_EQ(ya[n], kCanary);
      }
      for (auto [a, b] : {std::pair{kNan, 1.0f}, {1.0f, kNan}}) {
        float y;
        fns.vectors(&a, &b, &y, 1);
        EXPECT_TRUE(std::isnan(y))
            << hwy::TargetName(isa) << " " << c.op << "(" << a << "," << b << ")";
      }
    }
    hwy::SetSupportedTargetsForTest(0);
  }
}

// Zeros, infinities, and what lies on the borders of octants.
TEST(BinaryF32, AnglesOfEveryQuadrant) {
  const float kTiny = 1e-42f, kValues[] = {0, 1, 3, 1e-20f, kTiny, 1e30f, 3e38f, kInf};
  for (int64_t isa : IsasToTest()) {
    hwy::SetSupportedTargetsForTest(isa);
    const kernels::BinaryF32 atan2 = kernels::FindBinaryF32("Atan2").vectors;
    for (float height : kValues) {
      for (float width : kValues) {
        for (int signs = 0; signs < 4; ++signs) {
          const float y = signs & 1 ? -height : height, x = signs & 2 ? -width : width;
          float angle;
          atan2(&y, &x, &angle, 1);
          const double want = std::atan2(double{y}, double{x});
          EXPECT_NEAR(angle, want, 3e-7 * std::abs(want) + 1e-45)
              << hwy::TargetName(isa) << " " << y << " " << x;
          EXPECT_EQ(std::signbit(angle), std::signbit(y)) << y << " " << x;
        }
      }
    }
    hwy::SetSupportedTargetsForTest(0);
  }
}

TEST(BinaryF32, QuotientsByZero) {
  for (int64_t isa : IsasToTest()) {
    hwy::SetSupportedTargetsForTest(isa);
    for (float a : {0.0f, -1.0f, kInf, kNan}) {
      const float zero = 0;
      float y;
      kernels::FindBinaryF32("DivNoNan").vectors(&a, &zero, &y, 1);
      EXPECT_EQ(y, 0) << hwy::TargetName(isa) << " " << a;
      kernels::FindBinaryF32("FloorDiv").vectors(&a, &zero, &y, 1);
      EXPECT_TRUE(a == 0          ? std::isnan(y)
                  : std::isnan(a) ? std::isnan(y)
                                  : y == a / zero)
          << hwy::TargetName(isa) << " " << a << " " << y;
    }
    hwy::SetSupportedTargetsForTest(0);
  }
}

Tensor Counted(const Shape& shape, DType dtype, int start) {
  Tensor t = Tensor::Allocate(dtype, shape);
  for (int64_t i = 0; i < shape.elements(); ++i) {
    if (dtype == DType::kFloat32)
      static_cast<float*>(t.mutable_data())[i] = static_cast<float>(start + i);
    else
      static_cast<int32_t*>(t.mutable_data())[i] = static_cast<int32_t>(start + i);
  }
  return t;
}

// The element of a broadcast operand at the place of output element i.
int64_t IndexAt(const Shape& in, const Shape& out, int64_t i) {
  int64_t at = 0, stride = 1;
  for (int axis = out.rank() - 1; axis >= 0; --axis) {
    const int64_t place = i % out.dim(axis);
    i /= out.dim(axis);
    const int own = axis - (out.rank() - in.rank());
    if (own < 0) continue;
    if (in.dim(own) != 1) at += place * stride;
    stride *= in.dim(own);
  }
  return at;
}

TEST(Binary, BroadcastsEveryPattern) {
  const struct {
    Shape a, b, out;
  } kShapes[] = {
      {{}, {}, {}},
      {{3}, {}, {3}},
      {{}, {2, 3}, {2, 3}},
      {{2, 3}, {3}, {2, 3}},
      {{3}, {2, 3}, {2, 3}},
      {{2, 3}, {2, 1}, {2, 3}},
      {{2, 1}, {1, 3}, {2, 3}},
      {{2, 3, 4}, {3, 1}, {2, 3, 4}},
      {{2, 1, 4}, {3, 1}, {2, 3, 4}},
      {{5, 1, 3, 1}, {2, 1, 7}, {5, 2, 3, 7}},
      {{1, 1}, {1}, {1, 1}},
      {{0, 3}, {3}, {0, 3}},
      {{2, 0}, {1, 1}, {2, 0}},
      {{1, 2, 1, 2, 1, 2, 1, 2}, {2, 1, 2, 1, 2, 1, 2, 1}, {2, 2, 2, 2, 2, 2, 2, 2}},
      {{40, 1000}, {1000}, {40, 1000}},
      {{40, 1, 1000}, {1, 3, 1}, {40, 3, 1000}},
      {{3, 500, 5, 8}, {3, 1, 5, 1}, {3, 500, 5, 8}},
      {{3, 1, 5, 1}, {3, 500, 5, 8}, {3, 500, 5, 8}},
      {{9, 300, 6}, {300, 1}, {9, 300, 6}},
  };
  for (const auto& s : kShapes) {
    for (DType dtype : {DType::kFloat32, DType::kInt32}) {
      for (int threads : {1, 3}) {
        SCOPED_TRACE(testing::Message()
                     << s.a.ToString() << " " << s.b.ToString() << " " << DTypeName(dtype));
        const Tensor a = Counted(s.a, dtype, 100), b = Counted(s.b, dtype, 7);
        auto out = RunKernel("Sub", {}, {a, b}, {.threads = threads});
        ASSERT_TRUE(out.ok()) << out.status();
        ASSERT_EQ((*out)[0].shape(), s.out);
        for (int64_t i = 0; i < s.out.elements(); ++i) {
          const int64_t want = 93 + IndexAt(s.a, s.out, i) - IndexAt(s.b, s.out, i);
          const double got =
              dtype == DType::kFloat32 ? (*out)[0].as<float>()[i] : (*out)[0].as<int32_t>()[i];
          ASSERT_EQ(got, static_cast<double>(want)) << i;
        }
      }
    }
  }
}

TEST(Binary, ShapesAndTypesThatDoNotFit) {
  auto out =
      RunKernel("Add", {}, {FloatTensor({2, 3}, std::vector<float>(6)), FloatTensor({2}, {1, 2})});
  EXPECT_EQ(out.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(out.status().message().find("[2,3]"), absl::string_view::npos) << out.status();
  out = RunKernel("Add", {}, {FloatTensor({1}, {1}), Tensor::Vector<int32_t>(DType::kInt32, {1})});
  EXPECT_EQ(out.status().code(), absl::StatusCode::kInvalidArgument);
}

template <class T>
absl::StatusOr<std::vector<T>> RunAs(const char* op, DType dtype, const std::vector<T>& a,
                                     const std::vector<T>& b) {
  FLOE_ASSIGN_OR_RETURN(std::vector<Tensor> out,
                        RunKernel(op, {}, {Tensor::Vector(dtype, a), Tensor::Vector(dtype, b)}));
  return std::vector<T>(out[0].as<T>(), out[0].as<T>() + out[0].elements());
}
using Ints = std::vector<int32_t>;

// Quotients and remainders as TensorFlow computes them.
TEST(Binary, IntegerDivision) {
  const Ints a = {7, -7, 7, -7, INT32_MIN}, b = {2, 2, -2, -2, -1};
  EXPECT_EQ(*RunAs("FloorDiv", DType::kInt32, a, b), (Ints{3, -4, -4, 3, INT32_MIN}));
  EXPECT_EQ(*RunAs("FloorMod", DType::kInt32, a, b), (Ints{1, 1, -1, -1, 0}));
  EXPECT_EQ(*RunAs("RealDiv", DType::kInt32, a, b), (Ints{3, -3, -3, 3, INT32_MIN}));
  EXPECT_EQ(*RunAs("TruncateMod", DType::kInt32, a, b), (Ints{1, -1, 1, -1, 0}));
  EXPECT_EQ(*RunAs<uint8_t>("FloorDiv", DType::kUInt8, {200}, {7}), (std::vector<uint8_t>{28}));
  for (const char* op : {"FloorDiv", "FloorMod", "RealDiv", "TruncateMod"}) {
    const auto out = RunAs<int32_t>(op, DType::kInt32, {1, 2}, {1, 0});
    EXPECT_EQ(out.status().code(), absl::StatusCode::kInvalidArgument) << op;
    EXPECT_NE(out.status().message().find("division by zero"), absl::string_view::npos);
  }
}

TEST(Binary, IntegersWrapAround) {
  EXPECT_EQ(*RunAs<int32_t>("Add", DType::kInt32, {INT32_MAX}, {1}), (Ints{INT32_MIN}));
  EXPECT_EQ(*RunAs<uint8_t>("Sub", DType::kUInt8, {3}, {5}), (std::vector<uint8_t>{254}));
  EXPECT_EQ(*RunAs<uint16_t>("Mul", DType::kUInt16, {65535}, {65535}), (std::vector<uint16_t>{1}));
}

TEST(Binary, FloatDivisionAndPowers) {
  const std::vector<float> quotients =
      *RunAs<float>("FloorDiv", DType::kFloat32, {7, -7, 7, 1}, {2, 2, -2, 0});
  EXPECT_EQ(quotients, (std::vector<float>{3, -4, -4, kInf}));
  EXPECT_EQ(
      *RunAs<float>("FloorMod", DType::kFloat32, {7, -7, 7, -7, 5, -5}, {2, 2, -2, -2, kInf, kInf}),
      (std::vector<float>{1, 1, -1, -1, 5, kInf}));
  EXPECT_EQ(*RunAs<float>("DivNoNan", DType::kFloat32, {1, 3}, {0, 2}),
            (std::vector<float>{0, 1.5f}));
  EXPECT_EQ(*RunAs<float>("Pow", DType::kFloat32, {0, -2, 2, kNan, 1}, {0, 2, -1, 0, kNan}),
            (std::vector<float>{1, 4, 0.5f, 1, 1}));
  EXPECT_EQ(*RunAs<int32_t>("Pow", DType::kInt32, {2, -3, 0, 7}, {10, 3, 0, 1}),
            (Ints{1024, -27, 1, 7}));
  EXPECT_EQ(RunAs<int32_t>("Pow", DType::kInt32, {2}, {-1}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Binary, BitsAndLogic) {
  EXPECT_EQ(*RunAs<int32_t>("BitwiseAnd", DType::kInt32, {12}, {10}), (Ints{8}));
  EXPECT_EQ(*RunAs<int32_t>("BitwiseOr", DType::kInt32, {12}, {10}), (Ints{14}));
  EXPECT_EQ(*RunAs<int32_t>("BitwiseXor", DType::kInt32, {12}, {10}), (Ints{6}));
  EXPECT_EQ(*RunAs<int32_t>("LeftShift", DType::kInt32, {3, -1}, {2, 4}), (Ints{12, -16}));
  EXPECT_EQ(*RunAs<int32_t>("RightShift", DType::kInt32, {-16, 16}, {2, 3}), (Ints{-4, 2}));
  EXPECT_EQ(*RunAs<uint8_t>("LogicalAnd", DType::kBool, {0, 1, 1}, {1, 0, 1}),
            (std::vector<uint8_t>{0, 0, 1}));
  EXPECT_EQ(*RunAs<uint8_t>("LogicalOr", DType::kBool, {0, 1, 0}, {1, 0, 0}),
            (std::vector<uint8_t>{1, 1, 0}));
}

TEST(Binary, Comparisons) {
  const auto run = [](const char* op) {
    auto out =
        RunKernel(op, {}, {FloatTensor({4}, {1, 2, 3, kNan}), FloatTensor({4}, {2, 2, 2, kNan})});
    EXPECT_EQ((*out)[0].dtype(), DType::kBool);
    const auto* p = (*out)[0].as<uint8_t>();
    return std::vector<int>(p, p + 4);
  };
  EXPECT_EQ(run("Less"), (std::vector<int>{1, 0, 0, 0}));
  EXPECT_EQ(run("LessEqual"), (std::vector<int>{1, 1, 0, 0}));
  EXPECT_EQ(run("Greater"), (std::vector<int>{0, 0, 1, 0}));
  EXPECT_EQ(run("GreaterEqual"), (std::vector<int>{0, 1, 1, 0}));
  EXPECT_EQ(run("Equal"), (std::vector<int>{0, 1, 0, 0}));
  EXPECT_EQ(run("NotEqual"), (std::vector<int>{1, 0, 1, 1}));
}

TEST(Binary, EqualOfStrings) {
  Tensor a = Tensor::Allocate(DType::kString, Shape({2})),
         b = Tensor::Allocate(DType::kString, Shape({}));
  static_cast<std::string*>(a.mutable_data())[0] = "x";
  static_cast<std::string*>(a.mutable_data())[1] = "y";
  static_cast<std::string*>(b.mutable_data())[0] = "y";
  auto out = RunKernel("Equal", {}, {a, b});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_FALSE((*out)[0].as<bool>()[0]);
  EXPECT_TRUE((*out)[0].as<bool>()[1]);
}

TEST(BiasAdd, BothFormats) {
  std::vector<float> x(2 * 2 * 3);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  auto last =
      RunKernel("BiasAdd", {}, {FloatTensor({2, 2, 3}, x), FloatTensor({3}, {100, 200, 300})});
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ((*last)[0].as<float>()[5], 305);
  Attrs nchw;
  nchw.Set("data_format", std::string("NCHW"));
  auto first =
      RunKernel("BiasAdd", nchw, {FloatTensor({2, 2, 3}, x), FloatTensor({2}, {100, 200})});
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ((*first)[0].as<float>()[2], 102);
  EXPECT_EQ((*first)[0].as<float>()[3], 203);
  EXPECT_EQ((*first)[0].as<float>()[9], 209);
  EXPECT_FALSE(RunKernel("BiasAdd", {},
                         {FloatTensor({2, 3}, std::vector<float>(6)), FloatTensor({2}, {1, 2})})
                   .ok());
}

TEST(AddN, AddsAll) {
  auto out = RunKernel(
      "AddN", {},
      {FloatTensor({3}, {1, 2, 3}), FloatTensor({3}, {10, 20, 30}), FloatTensor({3}, {5, 5, 5})});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].as<float>()[2], 38);
  const Tensor i = Tensor::Vector<int64_t>(DType::kInt64, {4});
  EXPECT_EQ((*RunKernel("AddN", {}, {i, i, i}))[0].as<int64_t>()[0], 12);
  EXPECT_EQ((*RunKernel("AddN", {}, {i}))[0].as<int64_t>()[0], 4);
}

}  // namespace
}  // namespace floe
