// Ops whose few inputs ask for a lot: what they hold is bounded, and what they build is not nested.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/budget.h"
#include "runtime/run_op.h"

namespace floe {
namespace {

using testing::HasSubstr;

class WideValues : public testing::Test {
 protected:
  static std::string Code(const absl::StatusOr<std::vector<Tensor>>& outputs) {
    return absl::StatusCodeToString(outputs.status().code());
  }
  Budget budget_{{.max_value_bytes = 1 << 20, .max_bytes = 1 << 24}};
  BudgetScope scope_{&budget_};
};

TEST_F(WideValues, NGramsOfMuchPadding) {
  const Attrs attrs = WithAll({{"ngram_widths", std::vector<int64_t>{INT32_MAX}},
                               {"pad_width", int64_t{-1}},
                               {"separator", std::string(" ")},
                               {"left_pad", std::string("l")},
                               {"right_pad", std::string("r")}});
  EXPECT_EQ(Code(RunOp("StringNGrams", {Strings({"a"}), Longs({2}, {0, 1})}, attrs)),
            "RESOURCE_EXHAUSTED");
}

TEST_F(WideValues, CrossesOfFewValues) {
  const Tensor dense = Tensor::Allocate(DType::kString, Shape({1, 1000}));
  const Attrs attrs = WithAll({{"N", int64_t{0}},
                               {"sparse_types", std::vector<DType>{}},
                               {"dense_types", std::vector<DType>(3, DType::kString)}});
  const std::vector<Tensor> inputs = {dense, dense, dense, Strings({"x"}).Reshaped(Shape())};
  EXPECT_EQ(Code(RunOp("SparseCrossV2", inputs, attrs)), "RESOURCE_EXHAUSTED");
}

TEST_F(WideValues, SilenceOfAnyLength) {
  const std::string wav(
      "RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0"
      "data\0\0\0\0",
      44);
  const Tensor file = Strings({wav}).Reshaped(Shape());
  EXPECT_EQ(RunOp("DecodeWav", {file})->at(0).shape(), Shape({0, 1}));
  EXPECT_FALSE(RunOp("DecodeWav", {file}, With("desired_samples", int64_t{1} << 40)).ok());
}

TEST_F(WideValues, SubstringsOfOneText) {
  const Tensor text = Strings({std::string(1 << 16, 'x')});
  const Tensor pos = Longs({64}, std::vector<int64_t>(64, 0)),
               len = Longs({64}, std::vector<int64_t>(64, 1 << 16));
  EXPECT_EQ(Code(RunOp("Substr", {text, pos, len})), "RESOURCE_EXHAUSTED");
}

// A chain of prefixes as long as the sequence.
TEST(LongSequences, OfTheBeamSearch) {
  constexpr int64_t kSteps = 100'000;
  std::vector<float> logits;
  for (int64_t t = 0; t < kSteps; ++t)
    logits.insert(logits.end(), {t % 2 == 0 ? 9.0f : 0.0f, t % 2 == 0 ? 0.0f : 9.0f});
  const Attrs attrs =
      WithAll({{"beam_width", int64_t{1}}, {"top_paths", int64_t{1}}, {"merge_repeated", false}});
  const auto out =
      RunOp("CTCBeamSearchDecoder", {Floats({kSteps, 1, 2}, logits), Ints({1}, {kSteps})}, attrs);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(out->at(1).elements(), kSteps / 2);
  EXPECT_THAT(Message(RunOp("CTCBeamSearchDecoder", {Floats({1, 1, 1}, {1}), Ints({1}, {1})},
                            WithAll({{"beam_width", int64_t{2}}, {"top_paths", int64_t{2}}}))),
              HasSubstr("has only 1 paths"));
}

}  // namespace
}  // namespace floe
