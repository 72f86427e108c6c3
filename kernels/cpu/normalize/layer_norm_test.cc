#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/cpu/every_isa_for_test.h"
#include "kernels/cpu/hwy_targets.h"
#include "kernels/cpu/kernel_test_util.h"
#include "kernels/cpu/normalize/layer_norm_f32.h"

namespace floe {
namespace {

void ExpectNormalized(const float* x, const float* scale, const float* offset, const float* y,
                      int64_t n, double epsilon) {
  double mean = 0, variance = 0, largest = 0;
  for (int64_t i = 0; i < n; ++i) mean += x[i] / static_cast<double>(n);
  for (int64_t i = 0; i < n; ++i) {
    variance += (x[i] - mean) * (x[i] - mean) / static_cast<double>(n);
    largest = std::max(largest, std::abs(static_cast<double>(x[i])));
  }
  const double factor = 1 / std::sqrt(variance + epsilon);
  // What the mean loses in rounding counts for every element.
  const double tolerance = 2e-6 + 2e-7 * largest * factor;
  for (int64_t i = 0; i < n; ++i)
    ASSERT_NEAR(y[i], (x[i] - mean) * factor * scale[i] + offset[i], tolerance) << i;
}

TEST(LayerNorm, EveryIsaMatchesFloat64) {
  constexpr float kCanary = 12345.f;
  for (int64_t isa : IsasToTest()) {
    hwy::SetSupportedTargetsForTest(isa);
    const auto row = kernels::PickLayerNormF32();
    for (const int64_t n : {1, 2, 3, 7, 8, 15, 16, 17, 31, 63, 64, 65, 67, 256, 1000}) {
      for (const float shift : {0.0f, 100.0f}) {
        SCOPED_TRACE(testing::Message() << hwy::TargetName(isa) << " n=" << n << " " << shift);
        const Tensor x = RandomTensor(Shape({n}), 1), scale = RandomTensor(Shape({n}), 2),
                     offset = RandomTensor(Shape({n}), 3);
        std::vector<float> in(x.as<float>(), x.as<float>() + n), y(n + 1, kCanary);
        for (float& v : in) v += shift;
        row(in.data(), scale.as<float>(), offset.as<float>(), 1e-3f, y.data(),
            static_cast<size_t>(n));
        ExpectNormalized(in.data(), scale.as<float>(), offset.as<float>(), y.data(), n, 1e-3f);
        ASSERT_EQ(y[n], kCanary);
        row(in.data(), scale.as<float>(), offset.as<float>(), 1e-3f, in.data(),
            static_cast<size_t>(n));
        in.push_back(kCanary);
        ASSERT_EQ(in, y);  // over its input
      }
    }
    hwy::SetSupportedTargetsForTest(0);
  }
}

TEST(LayerNorm, RowsAndThreadsDoNotChangeBits) {
  Attrs attrs;
  attrs.Set("epsilon", 1e-5f);
  const Tensor scale = RandomTensor(Shape({37}), 2), offset = RandomTensor(Shape({37}), 3),
               all = RandomTensor(Shape({1000, 3, 37}), 1);
  const auto whole = RunKernel("LayerNorm", attrs, {all, scale, offset}, {.threads = 3});
  ASSERT_TRUE(whole.ok()) << whole.status();
  for (const int64_t i : {0, 1, 999}) {
    Tensor one = Tensor::Allocate(DType::kFloat32, Shape({1, 3, 37}));
    std::memcpy(one.mutable_data(), all.as<float>() + i * 111, one.bytes());
    const auto alone = RunKernel("LayerNorm", attrs, {one, scale, offset});
    ASSERT_TRUE(alone.ok()) << alone.status();
    EXPECT_EQ(std::memcmp((*alone)[0].data(), (*whole)[0].as<float>() + i * 111, one.bytes()), 0);
  }
}

TEST(LayerNorm, NoRowsNoLengthAndNan) {
  const Tensor none = Tensor::Allocate(DType::kFloat32, Shape({0}));
  EXPECT_TRUE(
      RunKernel("LayerNorm", {}, {Tensor::Allocate(DType::kFloat32, Shape({4, 0})), none, none})
          .ok());
  const Tensor two = FloatTensor(Shape({2}), {1, 1});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto out =
      RunKernel("LayerNorm", {}, {FloatTensor(Shape({2, 2}), {nan, 1, 1, 3}), two, two});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_TRUE(std::isnan((*out)[0].as<float>()[0]) && std::isnan((*out)[0].as<float>()[1]));
  EXPECT_NEAR((*out)[0].as<float>()[2], 0, 1e-6);
  EXPECT_NEAR((*out)[0].as<float>()[3], 2, 1e-6);
}

TEST(LayerNorm, RefusesScalesOfAnotherLength) {
  const Tensor three = FloatTensor(Shape({3}), {1, 1, 1}), two = FloatTensor(Shape({2}), {1, 1});
  EXPECT_FALSE(RunKernel("LayerNorm", {}, {RandomTensor(Shape({4, 2}), 1), two, three}).ok());
  EXPECT_FALSE(RunKernel("LayerNorm", {}, {RandomTensor(Shape({4, 2}), 1), three, two}).ok());
}

}  // namespace
}  // namespace floe
