#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>

#include "kernels/cpu/attention/attention_case_for_test.h"
#include "kernels/cpu/every_isa_for_test.h"
#include "kernels/cpu/hwy_targets.h"
#include "kernels/cpu/kernel_test_util.h"
#include "kernels/cpu/normalize/softmax_f32.h"

namespace floe {
namespace {

using Case = AttentionCase;

void ExpectAttention(const Case& c, int threads = 1) {
  const std::vector<Tensor> in = InputsOf(c);
  const auto out = RunKernel("Attention", AttrsOf(c), in, {.threads = threads});
  ASSERT_TRUE(out.ok()) << out.status();
  ASSERT_EQ((*out)[0].shape(), ShapeOf(c.out, c.batch, c.heads, c.queries, c.width));
  const std::vector<double> want = ExactAttention(c, in);
  for (size_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR((*out)[0].as<float>()[i], want[i], 3e-6) << i;
}

TEST(Attention, EveryIsaMatchesFloat64) {
  for (int64_t isa : IsasToTest()) {
    hwy::SetSupportedTargetsForTest(isa);
    SCOPED_TRACE(hwy::TargetName(isa));
    ExpectAttention({1, 1, 1, 1, 1, 1});
    ExpectAttention({2, 3, 5, 7, 9, 11});
    ExpectAttention({1, 2, 49, 33, 16, 17});
    ExpectAttention({1, 1, 100, 450, 20, 5});
    ExpectAttention({2, 1, 48, 64, 64, 64});
    hwy::SetSupportedTargetsForTest(0);
  }
}

TEST(Attention, EveryLayout) {
  for (const char* q : {"BTNH", "BNTH"}) {
    for (const char* k : {"BTNH", "BNTH", "BNHT"}) {
      for (const char* v : {"BTNH", "BNTH"}) {
        for (const char* out : {"BTNH", "BNTH"}) {
          SCOPED_TRACE(std::string(q) + " " + k + " " + v + " " + out);
          ExpectAttention({2, 3, 5, 7, 4, 6, q, k, v, out});
        }
      }
    }
  }
  ExpectAttention({2, 1, 5, 7, 4, 6, "BTH", "BTH", "BTH", "BTH"});
  ExpectAttention({2, 1, 5, 7, 4, 6, "BTH", "BHT", "BTH", "BTH"});
}

TEST(Attention, EveryMask) {
  for (const std::vector<int64_t>& mask : std::vector<std::vector<int64_t>>{
           {2, 3, 5, 7}, {2, 1, 1, 7}, {1, 3, 5, 1}, {5, 7}, {7}, {1}, {2, 1, 5, 7}, {3, 1, 7}}) {
    ExpectAttention({2, 3, 5, 7, 4, 6, "BTNH", "BTNH", "BTNH", "BTNH", mask});
  }
  ExpectAttention({2, 1, 5, 7, 4, 6, "BTH", "BTH", "BTH", "BTH", {2, 5, 7}});
}

TEST(Attention, MasksOfBools) {
  for (int64_t isa : IsasToTest()) {
    hwy::SetSupportedTargetsForTest(isa);
    for (const bool zero : {false, true}) {
      for (const std::vector<int64_t>& mask :
           std::vector<std::vector<int64_t>>{{2, 3, 5, 37}, {2, 1, 1, 37}, {5, 1}, {1}}) {
        ExpectAttention(
            {2, 3, 5, 37, 4, 6, "BTNH", "BTNH", "BTNH", "BTNH", mask, 0.4f, -1.5f, zero});
      }
    }
    hwy::SetSupportedTargetsForTest(0);
  }
}

TEST(Attention, RowsAndThreadsDoNotChangeBits) {
  const Case all{3, 2, 100, 37, 9, 5};
  const std::vector<Tensor> in = InputsOf(all);
  const auto whole = RunKernel("Attention", AttrsOf(all), in);
  ASSERT_TRUE(whole.ok()) << whole.status();
  for (const int threads : {2, 3, 7}) {
    const auto again = RunKernel("Attention", AttrsOf(all), in, {.threads = threads});
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(std::memcmp((*again)[0].data(), (*whole)[0].data(), (*whole)[0].bytes()), 0);
  }
  for (int64_t b = 0; b < 3; ++b) {
    std::vector<Tensor> row;
    for (const Tensor& x : in) {
      Shape shape = x.shape();
      shape.set_dim(0, 1);
      row.push_back(Tensor::Allocate(DType::kFloat32, shape));
      std::memcpy(row.back().mutable_data(), x.as<float>() + b * shape.elements(),
                  row.back().bytes());
    }
    const auto alone = RunKernel("Attention", AttrsOf(all), row, {.threads = 5});
    ASSERT_TRUE(alone.ok()) << alone.status();
    const int64_t n = (*alone)[0].elements();
    EXPECT_EQ(std::memcmp((*alone)[0].data(), (*whole)[0].as<float>() + b * n, (*alone)[0].bytes()),
              0);
  }
}

TEST(Attention, NothingToSum) {
  ExpectAttention({2, 2, 3, 0, 4, 5});  // no keys: zeros
  ExpectAttention({2, 2, 3, 4, 0, 5});  // no features: the mean of the values
  ExpectAttention({2, 2, 0, 4, 3, 5});
  ExpectAttention({0, 2, 3, 4, 3, 5});
  ExpectAttention({2, 2, 3, 4, 3, 0});
}

TEST(Attention, RefusesWhatDoesNotFit) {
  const Case c{2, 3, 5, 7, 4, 6};
  for (const int which : {1, 2}) {
    std::vector<Tensor> in = InputsOf(c);
    in[which] = RandomTensor(Shape({2, which == 1 ? 7 : 8, 3, which == 1 ? 5 : 6}), 1);
    EXPECT_FALSE(RunKernel("Attention", AttrsOf(c), in).ok()) << which;
  }
  Case bad = c;
  bad.q = "NBTH";
  EXPECT_FALSE(RunKernel("Attention", AttrsOf(bad), InputsOf(c)).ok());
  bad = c;
  bad.out = "BTH";
  EXPECT_FALSE(RunKernel("Attention", AttrsOf(bad), InputsOf(c)).ok());
}

TEST(ScaledSoftmax, EveryTailOnEveryIsa) {
  for (int64_t isa : IsasToTest()) {
    hwy::SetSupportedTargetsForTest(isa);
    const auto softmax = kernels::PickScaledSoftmaxF32();
    for (const int64_t n : {1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 33, 100}) {
      for (const int mask : {0, 1, 2}) {  // none, one for all, one for each
        const Tensor x = RandomTensor(Shape({n}), 1), m = RandomTensor(Shape({n}), 2);
        std::vector<float> y(n + 1, 7.0f);
        softmax(x.as<float>(), 3.0f,
                {.add = mask == 0 ? nullptr : m.as<float>(), .each = mask == 2}, y.data(),
                static_cast<size_t>(n));
        double sum = 0;
        std::vector<double> want;
        for (int64_t i = 0; i < n; ++i) {
          want.push_back(std::exp(3.0 * x.as<float>()[i] +
                                  (mask == 0 ? 0 : m.as<float>()[mask == 2 ? i : 0])));
          sum += want.back();
        }
        for (int64_t i = 0; i < n; ++i) ASSERT_NEAR(y[i], want[i] / sum, 1e-6) << n << " " << i;
        ASSERT_EQ(y[n], 7.0f);
      }
    }
    const float inf = std::numeric_limits<float>::infinity();
    const std::vector<float> x = {1, -inf, -1e9f, 1};
    std::vector<float> y(4);
    softmax(x.data(), 1, {}, y.data(), 4);
    EXPECT_EQ(y, (std::vector<float>{0.5f, 0, 0, 0.5f}));
    softmax(std::vector<float>{1, std::nanf(""), 0}.data(), 1, {}, y.data(), 3);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(std::isnan(y[i]));
    hwy::SetSupportedTargetsForTest(0);
  }
}

}  // namespace
}  // namespace floe
