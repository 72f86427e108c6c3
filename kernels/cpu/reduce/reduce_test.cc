// Reductions, ArgMax, softmax, pools and batch normalisation against plain loops in float64.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/every_isa_for_test.h"
#include "kernels/cpu/hwy_targets.h"
#include "kernels/cpu/kernel_test_util.h"

namespace floe {
namespace {

const float kNan = std::numeric_limits<float>::quiet_NaN();
const float kInf = std::numeric_limits<float>::infinity();

Tensor Ints(const std::vector<int32_t>& values) { return Tensor::Vector(DType::kInt32, values); }

std::vector<float> Some(int64_t n) {
  std::vector<float> x(n);
  for (int64_t i = 0; i < n; ++i) x[i] = static_cast<float>((i * 7919) % 1009) / 504.5f - 1;
  return x;
}

double Start(const std::string& op) {
  return op == "Prod" ? 1 : op == "Max" ? -INFINITY : op == "Min" ? INFINITY : 0;
}
double Step(const std::string& op, double a, double x) {
  return op == "Prod" ? a * x : op == "Max" ? std::max(a, x) : op == "Min" ? std::min(a, x) : a + x;
}

TEST(Reduce, EveryAxesSetOnEveryIsa) {
  OnEveryIsa([] {
    for (const Shape& shape : {Shape({3, 4, 5, 2}), Shape({2, 1, 67, 1}), Shape({1, 1, 1, 1}),
                               Shape({5, 1, 3, 33}), Shape({2, 3, 700, 2})}) {
      const std::vector<float> x = Some(shape.elements());
      for (int set = 0; set < 16; ++set) {
        std::vector<int32_t> axes;
        for (int a = 0; a < 4; ++a) {
          if ((set >> a) & 1) axes.push_back(a % 2 == 0 ? a : a - 4);
        }
        for (const std::string op : {"Sum", "Mean", "Prod", "Max", "Min"}) {
          SCOPED_TRACE(testing::Message() << op << " " << shape.ToString() << " axes " << set);
          Shape kept;
          for (int a = 0; a < 4; ++a) kept.push_back((set >> a) & 1 ? 1 : shape.dim(a));
          std::vector<double> want(kept.elements(), Start(op));
          for (int64_t i = 0; i < shape.elements(); ++i) {
            int64_t at = 0, rest = i, stride = 1;
            for (int a = 3; a >= 0; --a) {
              if (!((set >> a) & 1)) at += rest % shape.dim(a) * stride;
              rest /= shape.dim(a);
              stride *= kept.dim(a);
            }
            want[at] = Step(op, want[at], x[i]);
          }
          const double count =
              static_cast<double>(shape.elements()) / static_cast<double>(kept.elements());
          Attrs keep;
          keep.Set("keep_dims", true);
          auto out = RunKernel(op, keep, {FloatTensor(shape, x), Ints(axes)}, {.const_mask = 2});
          ASSERT_TRUE(out.ok()) << out.status();
          ASSERT_EQ((*out)[0].shape(), kept);
          for (size_t i = 0; i < want.size(); ++i) {
            if (op == "Mean") want[i] /= count;
            ASSERT_NEAR((*out)[0].as<float>()[i], want[i], 2e-7 * (1 + count)) << i;
          }
        }
      }
    }
  });
}

TEST(Reduce, RowsKeepTheirBits) {
  const std::vector<float> x = Some(4 * 7 * 13);
  for (const auto& axes : {std::vector<int32_t>{1}, {2}, {1, 2}}) {
    const auto all = RunKernel("Sum", {}, {FloatTensor({4, 7, 13}, x), Ints(axes)},
                               {.threads = 3, .const_mask = 2});
    for (int r = 0; r < 4; ++r) {
      const std::vector<float> row(x.begin() + r * 91, x.begin() + (r + 1) * 91);
      const auto one =
          RunKernel("Sum", {}, {FloatTensor({1, 7, 13}, row), Ints(axes)}, {.const_mask = 2});
      const size_t bytes = (*one)[0].bytes();
      EXPECT_EQ(std::memcmp((*one)[0].data(), (*all)[0].as<char>() + r * bytes, bytes), 0);
    }
  }
}

// Sums over dims on both sides of a kept one.
TEST(Reduce, RowsBetweenReducedDimsKeepTheirBits) {
  const int64_t before = 40, rows = 4, run = 6;
  const std::vector<float> x = Some(before * rows * run);
  const Tensor axes = Ints({0, 2});
  const auto all =
      RunKernel("Sum", {}, {FloatTensor({before, rows, run}, x), axes}, {.const_mask = 2});
  for (int64_t r = 0; r < rows; ++r) {
    std::vector<float> row;
    for (int64_t i = 0; i < before; ++i) {
      const auto from = x.begin() + (i * rows + r) * run;
      row.insert(row.end(), from, from + run);
    }
    const auto one =
        RunKernel("Sum", {}, {FloatTensor({before, 1, run}, row), axes}, {.const_mask = 2});
    EXPECT_EQ((*one)[0].as<float>()[0], (*all)[0].as<float>()[r]) << r;
  }
}

TEST(Reduce, EmptyNanAndOtherTypes) {
  const auto at = [](const char* op, const Tensor& x) {
    auto out = RunKernel(op, {}, {x, Ints({0})}, {.const_mask = 2});
    EXPECT_TRUE(out.ok()) << out.status();
    return (*out)[0];
  };
  EXPECT_TRUE(std::isnan(at("Mean", FloatTensor({0}, {})).as<float>()[0]));
  EXPECT_EQ(at("Max", FloatTensor({0}, {})).as<float>()[0], -kInf);
  EXPECT_EQ(at("Prod", FloatTensor({0}, {})).as<float>()[0], 1);
  EXPECT_EQ(at("Min", Tensor::Vector<int32_t>(DType::kInt32, {})).as<int32_t>()[0], INT32_MAX);
  for (const std::vector<float>& x : {std::vector<float>{kNan, 1, 1}, {1, 1, kNan}}) {
    EXPECT_TRUE(std::isnan(at("Max", FloatTensor({3}, x)).as<float>()[0]));
    EXPECT_TRUE(std::isnan(at("Min", FloatTensor({3}, x)).as<float>()[0]));
  }
  EXPECT_EQ(at("Mean", Ints({1, 2, 4, -19})).as<int32_t>()[0], -3);  // toward zero
  EXPECT_EQ(at("Sum", Tensor::Vector<int64_t>(DType::kInt64, {1, 2, 4})).as<int64_t>()[0], 7);
  EXPECT_EQ(at("Prod", Tensor::Vector<double>(DType::kFloat64, {1.5, 2})).as<double>()[0], 3);
  EXPECT_FALSE(at("All", Tensor::Vector<uint8_t>(DType::kBool, {1, 0})).as<bool>()[0]);
  EXPECT_TRUE(at("Any", Tensor::Vector<uint8_t>(DType::kBool, {1, 0})).as<bool>()[0]);
  EXPECT_EQ(
      at("Sum", Tensor::Vector<uint16_t>(DType::kFloat16, {0x3c00, 0x4000})).as<uint16_t>()[0],
      0x4200);
  EXPECT_FALSE(
      RunKernel("Sum", {}, {FloatTensor({3}, {1, 2, 3}), Ints({1})}, {.const_mask = 2}).ok());
}

TEST(ArgMax, FirstPlaceOfTheBest) {
  const Tensor x = FloatTensor({2, 3}, {1, 3, 3, 5, 5, 0});
  const auto run = [&](const char* op, int32_t axis) {
    auto out = RunKernel(op, {}, {x, Tensor::Scalar(DType::kInt32, axis)}, {.const_mask = 2});
    return std::vector<int64_t>((*out)[0].as<int64_t>(),
                                (*out)[0].as<int64_t>() + (*out)[0].elements());
  };
  EXPECT_EQ(run("ArgMax", 1), (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(run("ArgMax", 0), (std::vector<int64_t>{1, 1, 0}));
  EXPECT_EQ(run("ArgMin", -1), (std::vector<int64_t>{0, 2}));
}

TEST(Softmax, MatchesReferenceOnEveryIsa) {
  OnEveryIsa([] {
    for (int64_t n : {1, 2, 3, 4, 5, 7, 8, 10, 16, 17, 21, 33, 50, 64, 65, 1000}) {
      const int64_t rows = 39;  // short ones are taken together, up to 16
      std::vector<float> x = Some(rows * n);
      for (float& v : x) v *= 20;
      for (const bool log : {false, true}) {
        auto out = RunKernel(log ? "LogSoftmax" : "Softmax", {}, {FloatTensor({rows, n}, x)});
        ASSERT_TRUE(out.ok()) << out.status();
        for (int64_t r = 0; r < rows; ++r) {
          double sum = 0;
          for (int64_t i = 0; i < n; ++i) sum += std::exp(double(x[r * n + i]));
          for (int64_t i = 0; i < n; ++i) {
            const double log_p = x[r * n + i] - std::log(sum);
            const double want = log ? log_p : std::exp(log_p);
            ASSERT_NEAR((*out)[0].as<float>()[r * n + i], want,
                        log ? 4e-6 * (1 + std::abs(want)) : 3e-6 * want + 1e-30)
                << n;
          }
          // The row alone has the same bits.
          const std::vector<float> row(x.begin() + r * n, x.begin() + (r + 1) * n);
          auto alone = RunKernel(log ? "LogSoftmax" : "Softmax", {}, {FloatTensor({1, n}, row)});
          ASSERT_EQ(
              std::memcmp((*alone)[0].data(), (*out)[0].as<float>() + r * n, n * sizeof(float)), 0);
        }
      }
    }
    auto large = RunKernel("Softmax", {}, {FloatTensor({1, 3}, {1000, 1000, -1000})});
    EXPECT_FLOAT_EQ((*large)[0].as<float>()[0], 0.5f);
    EXPECT_EQ((*large)[0].as<float>()[2], 0);
    auto nan = RunKernel("Softmax", {}, {FloatTensor({1, 3}, {1, kNan, 3})});
    EXPECT_TRUE(std::isnan((*nan)[0].as<float>()[1]));
  });
  auto doubles =
      RunKernel("Softmax", {}, {Tensor::Vector<double>(DType::kFloat64, {0, std::log(3.0)})});
  EXPECT_DOUBLE_EQ((*doubles)[0].as<double>()[1], 0.75);
}

struct PoolCase {
  std::string padding;
  int64_t height, width, channels, kh, kw, sh, sw;
};

// Definition: each window's elements inside the input.
double PoolAt(const std::vector<float>& x, const PoolCase& c, bool mean, int64_t n, int64_t oh,
              int64_t ow, int64_t ch, int64_t out_h, int64_t out_w) {
  const auto low = [&](int64_t in, int64_t out, int64_t k, int64_t s) {
    return c.padding == "SAME"       ? std::max<int64_t>(0, (out - 1) * s + k - in) / 2
           : c.padding == "EXPLICIT" ? 1
                                     : 0;
  };
  const int64_t top = oh * c.sh - low(c.height, out_h, c.kh, c.sh),
                left = ow * c.sw - low(c.width, out_w, c.kw, c.sw);
  double sum = 0, best = -INFINITY, count = 0;
  for (int64_t i = top; i < top + c.kh; ++i) {
    for (int64_t j = left; j < left + c.kw; ++j) {
      if (i < 0 || j < 0 || i >= c.height || j >= c.width) continue;
      const double v = x[((n * c.height + i) * c.width + j) * c.channels + ch];
      sum += v;
      best = std::max(best, v);
      ++count;
    }
  }
  return mean ? sum / count : best;
}

TEST(Pool, MatchesReferenceOnEveryIsa) {
  OnEveryIsa([] {
    for (const PoolCase& c : {PoolCase{"SAME", 7, 6, 5, 3, 3, 2, 2},
                              {"VALID", 7, 6, 17, 2, 3, 2, 1},
                              {"SAME", 4, 4, 32, 2, 2, 2, 2},
                              {"EXPLICIT", 5, 5, 3, 3, 3, 1, 2},
                              {"SAME", 1, 9, 1, 1, 5, 1, 4},
                              {"SAME", 3, 3, 2, 5, 5, 1, 1}}) {
      const std::vector<float> x = Some(2 * c.height * c.width * c.channels);
      Attrs attrs;
      attrs.Set("padding", c.padding);
      attrs.Set("ksize", std::vector<int64_t>{1, c.kh, c.kw, 1});
      attrs.Set("strides", std::vector<int64_t>{1, c.sh, c.sw, 1});
      if (c.padding == "EXPLICIT")
        attrs.Set("explicit_paddings", std::vector<int64_t>{0, 0, 1, 1, 1, 1, 0, 0});
      for (const bool mean : {false, true}) {
        SCOPED_TRACE(testing::Message()
                     << c.padding << " " << c.height << "x" << c.width << " mean " << mean);
        auto out = RunKernel(mean ? "AvgPool" : "MaxPool", attrs,
                             {FloatTensor({2, c.height, c.width, c.channels}, x)}, {.threads = 2});
        ASSERT_TRUE(out.ok()) << out.status();
        const int64_t oh = (*out)[0].shape().dim(1), ow = (*out)[0].shape().dim(2);
        const int64_t pad = c.padding == "EXPLICIT" ? 2 : 0;
        ASSERT_EQ(oh, c.padding == "SAME" ? (c.height + c.sh - 1) / c.sh
                                          : (c.height + pad - c.kh) / c.sh + 1);
        for (int64_t n = 0; n < 2; ++n) {
          for (int64_t i = 0; i < oh * ow; ++i) {
            for (int64_t ch = 0; ch < c.channels; ++ch) {
              const double want = PoolAt(x, c, mean, n, i / ow, i % ow, ch, oh, ow);
              ASSERT_NEAR((*out)[0].as<float>()[(n * oh * ow + i) * c.channels + ch], want, 1e-6);
            }
          }
        }
      }
    }
  });
}

TEST(Pool, ThreeDimsAndArgmax) {
  Attrs attrs;
  attrs.Set("padding", std::string("VALID"));
  attrs.Set("ksize", std::vector<int64_t>{1, 2, 2, 2, 1});
  attrs.Set("strides", std::vector<int64_t>{1, 2, 2, 2, 1});
  const Tensor x = FloatTensor({1, 2, 2, 2, 1}, {1, 2, 3, 4, 5, 6, 7, 9});
  EXPECT_EQ((*RunKernel("MaxPool3D", attrs, {x}))[0].as<float>()[0], 9);
  EXPECT_FLOAT_EQ((*RunKernel("AvgPool3D", attrs, {x}))[0].as<float>()[0], 37.0f / 8);
  Attrs flat;
  flat.Set("padding", std::string("SAME"));
  flat.Set("ksize", std::vector<int64_t>{1, 2, 2, 1});
  flat.Set("strides", std::vector<int64_t>{1, 2, 2, 1});
  auto out = RunKernel("MaxPoolWithArgmax", flat,
                       {FloatTensor({2, 2, 3, 1}, {1, 2, 3, 4, 5, 6, 9, 8, 7, 6, 5, 4})});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(std::vector<float>((*out)[0].as<float>(), (*out)[0].as<float>() + 4),
            (std::vector<float>{5, 6, 9, 7}));
  EXPECT_EQ(std::vector<int64_t>((*out)[1].as<int64_t>(), (*out)[1].as<int64_t>() + 4),
            (std::vector<int64_t>{4, 5, 0, 2}));
}

TEST(BatchNorm, InferenceAndTraining) {
  OnEveryIsa([] {
    const std::vector<float> x = Some(2 * 3 * 2 * 5);
    const std::vector<float> scale = {1, 2, 0.5f, -1, 3}, offset = {0, 1, 2, 3, 4},
                             mean = {0.1f, 0, -0.2f, 0.3f, 1}, variance = {1, 2, 0.5f, 0.1f, 4};
    Attrs attrs;
    attrs.Set("epsilon", 0.01f);
    attrs.Set("is_training", false);
    auto out =
        RunKernel("FusedBatchNormV3", attrs,
                  {FloatTensor({2, 3, 2, 5}, x), FloatTensor({5}, scale), FloatTensor({5}, offset),
                   FloatTensor({5}, mean), FloatTensor({5}, variance)});
    ASSERT_TRUE(out.ok()) << out.status();
    ASSERT_EQ(out->size(), 6u);
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t c = i % 5;
      const double want =
          (double(x[i]) - mean[c]) * scale[c] / std::sqrt(double(variance[c]) + 0.01f) + offset[c];
      ASSERT_NEAR((*out)[0].as<float>()[i], want, 3e-6) << i;
    }
    EXPECT_EQ((*out)[1].as<float>()[4], 1);
    EXPECT_EQ((*out)[2].as<float>()[1], 2);
  });
  // Two channels of two elements each, NCHW, with the batch's own statistics.
  Attrs attrs;
  attrs.Set("epsilon", 0.0f);
  attrs.Set("is_training", true);
  attrs.Set("data_format", std::string("NCHW"));
  const Tensor none = FloatTensor({2}, {0, 0});
  auto out = RunKernel("FusedBatchNormV3", attrs,
                       {FloatTensor({1, 2, 1, 2}, {1, 3, 10, 30}), FloatTensor({2}, {1, 1}),
                        FloatTensor({2}, {0, 5}), none, none});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(std::vector<float>((*out)[0].as<float>(), (*out)[0].as<float>() + 4),
            (std::vector<float>{-1, 1, 4, 6}));
  EXPECT_EQ((*out)[1].as<float>()[1], 20);
  EXPECT_EQ((*out)[2].as<float>()[0], 2);  // divided by n - 1
}

TEST(Cast, BetweenTypes) {
  const auto run = [](const Tensor& x, DType to) {
    Attrs attrs;
    attrs.Set("DstT", to);
    auto out = RunKernel("Cast", attrs, {x});
    EXPECT_TRUE(out.ok()) << out.status();
    return (*out)[0];
  };
  const Tensor x = FloatTensor({6}, {1.9f, -1.9f, 3e9f, -3e9f, kNan, kInf});
  const Tensor ints = run(x, DType::kInt32);
  EXPECT_EQ(std::vector<int32_t>(ints.as<int32_t>(), ints.as<int32_t>() + 6),
            (std::vector<int32_t>{1, -1, INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN}));
  const Tensor bytes = run(FloatTensor({3}, {300, -1, 1.9f}), DType::kUInt8);
  EXPECT_EQ(std::vector<int>(bytes.as<uint8_t>(), bytes.as<uint8_t>() + 3),
            (std::vector<int>{44, 255, 1}));
  const Tensor flags = run(FloatTensor({4}, {0, -0.0f, 0.1f, kNan}), DType::kBool);
  EXPECT_EQ(std::vector<int>(flags.as<uint8_t>(), flags.as<uint8_t>() + 4),
            (std::vector<int>{0, 0, 1, 1}));
  EXPECT_EQ(run(flags, DType::kFloat32).as<float>()[2], 1);
  EXPECT_EQ(run(FloatTensor({1}, {1.5f}), DType::kFloat16).as<uint16_t>()[0], 0x3e00);
  EXPECT_EQ(
      run(Tensor::Vector<uint16_t>(DType::kBFloat16, {0x3fc0}), DType::kFloat64).as<double>()[0],
      1.5);
  EXPECT_EQ(run(Tensor::Vector<int64_t>(DType::kInt64, {int64_t{1} << 40}), DType::kFloat32)
                .as<float>()[0],
            0x1p40f);
  EXPECT_EQ(run(Tensor::Vector<int32_t>(DType::kInt32, {-1}), DType::kUInt64).as<uint64_t>()[0],
            UINT64_MAX);
  EXPECT_EQ(run(Ints({7}), DType::kInt32).as<int32_t>()[0], 7);
}

TEST(Random, HasItsDistribution) {
  Attrs attrs;
  attrs.Set("dtype", DType::kFloat32);
  auto made = MakeTestKernel("RandomUniform", attrs, {Ints({10000})}, {.const_mask = 1});
  ASSERT_TRUE(made.ok()) << made.status();
  auto first = RunTestKernel(*(*made)->kernel, {Ints({10000})}, (*made)->output_types);
  auto second = RunTestKernel(*(*made)->kernel, {Ints({10000})}, (*made)->output_types);
  double sum = 0;
  int equal = 0;
  for (int i = 0; i < 10000; ++i) {
    const float v = (*first)[0].as<float>()[i];
    ASSERT_GE(v, 0);
    ASSERT_LT(v, 1);
    sum += v;
    equal += v == (*second)[0].as<float>()[i];
  }
  EXPECT_NEAR(sum / 10000, 0.5, 0.02);
  EXPECT_LT(equal, 10);
  auto normal = RunKernel("RandomStandardNormal", attrs, {Ints({10000})}, {.const_mask = 1});
  double square = 0;
  for (int i = 0; i < 10000; ++i) square += std::pow((*normal)[0].as<float>()[i], 2);
  EXPECT_NEAR(square / 10000, 1, 0.08);
}

TEST(Random, ShuffleAndMultinomial) {
  std::vector<int32_t> values(100);
  for (int i = 0; i < 100; ++i) values[i] = i;
  auto shuffled = RunKernel("RandomShuffle", {}, {Ints(values)});
  ASSERT_TRUE(shuffled.ok()) << shuffled.status();
  std::vector<int32_t> got((*shuffled)[0].as<int32_t>(), (*shuffled)[0].as<int32_t>() + 100);
  EXPECT_NE(got, values);
  std::sort(got.begin(), got.end());
  EXPECT_EQ(got, values);
  // Probabilities 0.2, 0.8 and 0.
  auto drawn = RunKernel(
      "Multinomial", {},
      {FloatTensor({1, 3}, {0, std::log(4.0f), -1000}), Tensor::Scalar(DType::kInt32, 10000)},
      {.const_mask = 2});
  ASSERT_TRUE(drawn.ok()) << drawn.status();
  double sum = 0;
  for (int i = 0; i < 10000; ++i) {
    ASSERT_LT((*drawn)[0].as<int64_t>()[i], 2);
    sum += static_cast<double>((*drawn)[0].as<int64_t>()[i]);
  }
  EXPECT_NEAR(sum / 10000, 0.8, 0.03);
}

}  // namespace
}  // namespace floe
