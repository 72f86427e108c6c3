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
  EXPECT_EQ(QuotedList({"a\n"}), "'a\\n'");
}

TEST(QuotedList, IsBounded) {
  const std::string all = QuotedList(std::vector<std::string>(kMostListedNames, "a"));
  EXPECT_EQ(QuotedList(std::vector<std::string>(kMostListedNames + 3, "a")), all + " and 3 more");
}

TEST(NearestHint, OnlyWhatIsLikeTheName) {
  const std::vector<std::string> flags = {"--port", "--model_name", "--model_base_path"};
  EXPECT_EQ(NearestHint("--prt", flags), "; nearest: '--port'");
  EXPECT_EQ(NearestHint("--Model_Name", flags), "; nearest: '--model_name'");
  EXPECT_EQ(NearestHint("base", flags), "; nearest: '--model_base_path'");
  EXPECT_EQ(NearestHint("tls", {"log", "cpu", "server"}), "");
  EXPECT_EQ(NearestHint("x", {}), "");
}

}  // namespace
}  // namespace floe
