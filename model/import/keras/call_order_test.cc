#include "model/import/keras/call_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace floe::keras {
namespace {

using testing::ElementsAre;
using Calls = std::vector<OrderedCall>;

// Calls: 0 is the input, all of layers of their own unless a test says otherwise.
TEST(CallOrder, CallsFarFromTheOutputsComeFirst) {
  // Of the input: 1, and 2 behind 3. All are joined by 4.
  const Calls calls = {{0, {}}, {1, {0}}, {2, {3}}, {3, {0}}, {4, {1, 2}}};
  EXPECT_THAT(CallOrder(calls, {4}), ElementsAre(0, 3, 1, 2, 4));
}

TEST(CallOrder, OfEqualDepthTheOrderOfArgumentsCounts) {
  EXPECT_THAT(CallOrder({{0, {}}, {1, {0}}, {2, {0}}, {3, {1, 2}}}, {3}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(CallOrder({{0, {}}, {1, {0}}, {2, {0}}, {3, {2, 1}}}, {3}), ElementsAre(0, 2, 1, 3));
}

TEST(CallOrder, WhatNoOutputNeedsIsLeftOut) {
  EXPECT_THAT(CallOrder({{0, {}}, {1, {0}}, {2, {0}}}, {2}), ElementsAre(0, 2));
}

TEST(CallOrder, ALayerIsAsDeepAsItsDeepestCall) {
  // Layer 1 is called on the input, and on what layer 2 made of that.
  const Calls calls = {{0, {}}, {1, {0}}, {2, {1}}, {1, {2}}, {4, {3}}};
  EXPECT_THAT(CallOrder(calls, {4}), ElementsAre(0, 1, 2, 3, 4));
}

TEST(CallOrder, ACircleEnds) { EXPECT_EQ(CallOrder({{0, {1}}, {1, {0}}}, {1}).size(), 2u); }

TEST(CallOrder, LongChainsNeedNoStack) {
  constexpr int kCalls = 200'000;
  Calls calls = {{0, {}}};
  for (int i = 1; i < kCalls; ++i) calls.push_back({i, {i - 1}});
  const std::vector<int> order = CallOrder(calls, {kCalls - 1});
  ASSERT_EQ(order.size(), static_cast<size_t>(kCalls));
  EXPECT_EQ(order.front(), 0);
}

}  // namespace
}  // namespace floe::keras
