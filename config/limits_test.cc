#include "config/limits.h"

#include "config/mistakes_for_test.h"

namespace floe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CpuSet, TextToCpusAndBack) {
  EXPECT_THAT(ParseCpuSet("3").value(), ElementsAre(3));
  EXPECT_THAT(ParseCpuSet("8,0-2,1").value(), ElementsAre(0, 1, 2, 8));
  EXPECT_EQ(CpuSetText({0, 1, 2, 8}), "0-2,8");
  EXPECT_EQ(CpuSetText({4}), "4");
  EXPECT_EQ(CpuSetText({}), "");
}

TEST(CpuSet, MistakesNameThePart) {
  for (const char* text : {"", "a", "1,", "3-1", "-1", "1-2-3", "8192", "0-99999999999", "1 2"})
    EXPECT_THAT(MistakesOf(ParseCpuSet(text).status()), ElementsAre(HasSubstr("0-3,8"))) << text;
}

TEST(Batching, RulesBetweenKeys) {
  BatchingConfig b;
  EXPECT_THAT(BatchingMistakes(b), ElementsAre());
  b.allowed_batch_sizes = {4, 8, 64};
  EXPECT_THAT(BatchingMistakes(b), ElementsAre()) << "batches are as large as the last";
  b.max_batch_size = 64;
  EXPECT_THAT(BatchingMistakes(b), ElementsAre());
  b.allowed_batch_sizes = {8, 4};
  EXPECT_THAT(BatchingMistakes(b),
              ElementsAre(HasSubstr("4 follows 8"),
                          HasSubstr("the last, 4, must equal max_batch_size, which is 64")));
  b.allowed_batch_sizes = {0, 64};
  EXPECT_THAT(BatchingMistakes(b), ElementsAre(HasSubstr("0 is no number of rows")));
  b.allowed_batch_sizes = {8, 16};
  b.max_execution_batch_size = 16;
  EXPECT_THAT(BatchingMistakes(b), ElementsAre()) << "runs end where the list does";
  b.allowed_batch_sizes = {8, 16, 64};
  EXPECT_THAT(BatchingMistakes(b), ElementsAre()) << "batches end where the list does";
  b.allowed_batch_sizes = {8, 16};
  b.enable_large_batch_splitting = false;
  EXPECT_THAT(BatchingMistakes(b), ElementsAre(HasSubstr("max_batch_size, which is 64")))
      << "batches run whole";
  b = {};
  b.max_batch_size = 64;
  b.max_execution_batch_size = 65;
  EXPECT_THAT(BatchingMistakes(b), ElementsAre(HasSubstr("65 is more than max_batch_size")));
  b.max_batch_size = 0;
  EXPECT_THAT(BatchingMistakes(b), ElementsAre()) << "decided later";
  b = {};
  b.padding_values = {{"x", 1}};
  EXPECT_THAT(BatchingMistakes(b), ElementsAre(HasSubstr("pad_variable_length_inputs: true")));
}

TEST(Batching, TheLastAllowedSizeIsTheMaximumWhenNothingElseIsSaid) {
  BatchingConfig b;
  b.allowed_batch_sizes = {2, 4};
  FillBatching(true, &b);
  EXPECT_EQ(b.max_batch_size, BatchingConfig().max_batch_size);
  FillBatching(false, &b);
  EXPECT_EQ(b.max_batch_size, 4);
  b = {};
  b.allowed_batch_sizes = {2, 4};
  b.max_execution_batch_size = 4;
  FillBatching(false, &b);
  EXPECT_EQ(b.max_batch_size, BatchingConfig().max_batch_size) << "4 is of runs, not of batches";
}

}  // namespace
}  // namespace floe
