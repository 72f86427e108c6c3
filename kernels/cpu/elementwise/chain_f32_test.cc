// Chains against each op alone, in float.
#include "kernels/cpu/elementwise/chain_f32.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "kernels/cpu/every_isa_for_test.h"

namespace floe::kernels {
namespace {

float Plain(const ChainLink& link, float x, float operand) {
  switch (link.op) {
    case ChainOp::kAdd:
      return x + operand;
    case ChainOp::kSub:
      return x - operand;
    case ChainOp::kSubFrom:
      return operand - x;
    case ChainOp::kMul:
      return x * operand;
    case ChainOp::kDiv:
      return x / operand;
    case ChainOp::kDivInto:
      return operand / x;
    case ChainOp::kRelu:
      return x < 0 ? 0 : x;
    case ChainOp::kRelu6:
      return x < 0 ? 0 : x > 6 ? 6 : x;
  }
  return x;
}

std::vector<float> Numbers(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> numbers(-9.0f, 9.0f);
  std::vector<float> values(count);
  for (float& value : values) value = numbers(random);
  const float special[] = {0.0f, -0.0f, std::numeric_limits<float>::infinity(), 1e-39f, 3e38f};
  for (size_t i = seed % 3; i < count; i += 7) values[i] = special[(i / 7 + seed) % 5];
  return values;
}

bool SameNumber(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

// Every length up to three blocks of the widest vectors, chains of one to four random links.
TEST(ChainF32, EveryLinkAndLength) {
  OnEveryIsa([] {
    const ChainF32 chain = PickChainF32();
    std::mt19937 random(5);
    for (size_t n = 0; n < 400; ++n) {
      const size_t count = 1 + random() % 4;
      std::vector<ChainLink> links(count);
      std::vector<std::vector<float>> operands(count);
      for (size_t k = 0; k < count; ++k) {
        operands[k] = Numbers(std::max<size_t>(n, 1), static_cast<unsigned>(n + 3 * k));
        links[k] = {static_cast<ChainOp>(random() % 8), operands[k].data(),
                    static_cast<int64_t>(random() % 2)};
      }
      const int64_t step = random() % 4 == 0 ? 0 : 1;
      const std::vector<float> x = Numbers(std::max<size_t>(n, 1), static_cast<unsigned>(n + 1));
      std::vector<float> y(n + 8, 123.0f);
      chain(x.data(), step, links.data(), count, y.data(), n);
      for (size_t i = 0; i < n; ++i) {
        float want = x[i * step];
        for (const ChainLink& link : links) want = Plain(link, want, link.operand[i * link.step]);
        ASSERT_TRUE(SameNumber(y[i], want)) << y[i] << " for " << want << ", " << i << " of " << n;
      }
      for (size_t i = n; i < y.size(); ++i) ASSERT_EQ(y[i], 123.0f) << "written behind the end";
    }
  });
}

TEST(ChainF32, InPlace) {
  OnEveryIsa([] {
    std::vector<float> x = Numbers(300, 1), b = Numbers(300, 2);
    const ChainLink links[] = {{ChainOp::kMul, b.data(), 1}, {ChainOp::kSub, x.data(), 1}};
    std::vector<float> want(300), over_b = b;
    for (int i = 0; i < 300; ++i) want[i] = x[i] * b[i] - x[i];
    const ChainLink on_b[] = {{ChainOp::kMul, over_b.data(), 1}, {ChainOp::kSub, x.data(), 1}};
    PickChainF32()(x.data(), 1, on_b, 2, over_b.data(), 300);
    PickChainF32()(x.data(), 1, links, 2, x.data(), 300);
    for (int i = 0; i < 300; ++i) {
      ASSERT_TRUE(SameNumber(over_b[i], want[i]));
      ASSERT_TRUE(SameNumber(x[i], want[i]));
    }
  });
}

TEST(ChainF32, NamesOfOps) {
  EXPECT_EQ(ChainOpOf("Sub", false), ChainOp::kSub);
  EXPECT_EQ(ChainOpOf("Sub", true), ChainOp::kSubFrom);
  EXPECT_EQ(ChainOpOf("RealDiv", false), ChainOp::kDiv);
  EXPECT_EQ(ChainOpOf("RealDiv", true), ChainOp::kDivInto);
  EXPECT_EQ(ChainOpOf("Tanh", false), std::nullopt);
}

}  // namespace
}  // namespace floe::kernels
