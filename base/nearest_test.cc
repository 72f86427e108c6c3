#include "base/nearest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace floe {
namespace {

TEST(NearestNames, OrdersByDistanceAndIgnoresCase) {
  EXPECT_THAT(NearestNames("Sofmax", {"input", "softmax", "soft", "dense/Relu"}),
              testing::ElementsAre("softmax", "soft", "input"));
}

TEST(NearestNames, AContainingNameIsNear) {
  EXPECT_THAT(NearestNames("Relu", {"abcd", "model/block_1/conv/Relu", "wxyz"}, 1),
              testing::ElementsAre("model/block_1/conv/Relu"));
}

TEST(QuotedList, NamesEmptiness) {
  EXPECT_EQ(QuotedList({}), "(none)");
  EXPECT_EQ(QuotedList({"a", "b"}), "'a', 'b'");
}

}  // namespace
}  // namespace floe
