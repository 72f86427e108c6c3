#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/cpu/attention/attention_case_for_test.h"
#include "kernels/cuda/device_for_test.h"

namespace floe::cuda {
namespace {

using Case = AttentionCase;

void Check(const Case& c) {
  const std::vector<Tensor> in = InputsOf(c);
  SCOPED_TRACE(in[0].shape().ToString() + in[1].shape().ToString());
  const Tensor got = RunInEveryOrder("Attention", AttrsOf(c), in);
  ASSERT_EQ(got.shape(), ShapeOf(c.out, c.batch, c.heads, c.queries, c.width));
  const std::vector<double> want = ExactAttention(c, in);
  ExpectNear(got, want.data(), 1e-5);
  const bool mask_has_rows = !c.mask.empty() && c.mask.size() == c.q.size() && c.mask[0] != 1;
  ExpectRowsAlone("Attention", AttrsOf(c), in, mask_has_rows ? 15 : 7, got);
}

TEST(AttentionOnDeviceTest, AgreesWithFloat64) {
  Check({2, 3, 5, 7, 4, 6});
  Check({2, 2, 64, 64, 16, 64});
  Check({1, 1, 65, 130, 33, 70});
  Check({2, 2, 3, 200, 8, 8, "BNTH", "BNHT", "BNTH", "BTNH"});
  Check({3, 1, 9, 20, 5, 7, "BTH", "BTH", "BTH", "BTH"});
  Check({3, 1, 9, 20, 5, 7, "BTH", "BHT", "BTH", "BTH"});
  Check({2, 4, 1, 90, 16, 16, "BTNH", "BTNH", "BTNH", "BNTH"});
}

TEST(AttentionOnDeviceTest, AppliesMasks) {
  Check({2, 3, 5, 70, 4, 6, "BTNH", "BTNH", "BTNH", "BTNH", {5, 70}});
  Check({2, 3, 5, 70, 4, 6, "BTNH", "BTNH", "BTNH", "BTNH", {2, 3, 5, 70}});
  Check({2, 3, 5, 70, 4, 6, "BTNH", "BTNH", "BTNH", "BTNH", {2, 1, 1, 70}, 0.3f, -1e9f});
  Check({2, 3, 5, 70, 4, 6, "BTNH", "BTNH", "BTNH", "BTNH", {1, 1, 5, 70}, 0.3f, -2.0f, true});
  Check({2, 1, 5, 70, 4, 6, "BTH", "BTH", "BTH", "BTH", {2, 1, 70}, 0.3f, -1e9f, true});
}

// The first tile of keys is hidden, and one query's keys all are.
TEST(AttentionOnDeviceTest, HidesWholeTiles) {
  const Case c = {1, 1, 3, 150, 4, 5, "BTH", "BTH", "BTH", "BTH", {3, 150}};
  std::vector<Tensor> in = InputsOf(c);
  auto* mask = static_cast<float*>(in[3].mutable_data());
  for (int64_t i = 0; i < 3 * 150; ++i) {
    if (i % 150 < 70 || i / 150 == 2) mask[i] = -std::numeric_limits<float>::infinity();
  }
  const Tensor got = RunInEveryOrder("Attention", AttrsOf(c), in);
  ASSERT_EQ(got.elements(), 15);
  const std::vector<double> want = ExactAttention(c, in);
  ExpectNear(RowsOf(got.Reshaped(Shape({3, 5})), 0, 2), want.data(), 1e-5);
  for (int i = 10; i < 15; ++i) EXPECT_TRUE(std::isnan(got.as<float>()[i]));
}

TEST(AttentionOnDeviceTest, NaNAndInfinityStayInTheirQuery) {
  const Case c = {1, 1, 3, 70, 4, 5, "BTH", "BTH", "BTH", "BTH"};
  std::vector<Tensor> in = InputsOf(c);
  static_cast<float*>(in[0].mutable_data())[0] = std::numeric_limits<float>::quiet_NaN();
  const Tensor got = RunInEveryOrder("Attention", AttrsOf(c), in);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(std::isnan(got.as<float>()[i]));
  for (int i = 5; i < 15; ++i) EXPECT_TRUE(std::isfinite(got.as<float>()[i]));
}

TEST(AttentionOnDeviceTest, WithoutKeysThereIsNothing) {
  const Case c = {1, 1, 3, 0, 4, 5, "BTH", "BTH", "BTH", "BTH"};
  const Tensor got = RunInEveryOrder("Attention", AttrsOf(c), InputsOf(c));
  for (int i = 0; i < 15; ++i) EXPECT_EQ(got.as<float>()[i], 0);
}

TEST(AttentionOnDeviceTest, RefusesShapesThatDoNotFit) {
  const Case c = {2, 3, 5, 7, 4, 6};
  std::vector<Tensor> in = InputsOf(c);
  EXPECT_TRUE(Computes("Attention", AttrsOf(c), in));
  in[2] = RandomTensor(Shape({2, 8, 3, 6}), 1);
  EXPECT_FALSE(Computes("Attention", AttrsOf(c), in));
}

}  // namespace
}  // namespace floe::cuda
