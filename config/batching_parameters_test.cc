// BatchingParameters -> BatchingConfig.
#include "config/mistakes_for_test.h"
#include "config/model_server_config.h"

namespace floe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(BatchingParameters, EveryFieldIsRead) {
  ModelConfig model;
  std::vector<std::string> notes;
  const absl::Status status = ParseBatchingParameters(R"(
max_batch_size { value: 128 }
batch_timeout_micros { value: 500 }
max_enqueued_batches { value: 7 }
num_batch_threads { value: 3 }
thread_pool_name { value: "pool" }
enable_large_batch_splitting { value: true }
max_execution_batch_size { value: 32 }
allowed_batch_sizes: 8
allowed_batch_sizes: [16, 32]
pad_variable_length_inputs: true
)",
                                                      "b.config", &model, &notes);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(model.workers, 3);
  const BatchingConfig& b = model.batching;
  EXPECT_EQ(b.max_batch_size, 128);
  EXPECT_EQ(b.batch_timeout_micros, 500);
  EXPECT_EQ(b.max_enqueued_batches, 7);
  EXPECT_EQ(b.max_execution_batch_size, 32);
  EXPECT_THAT(b.allowed_batch_sizes, ElementsAre(8, 16, 32));
  EXPECT_TRUE(b.pad_variable_length_inputs);
  EXPECT_THAT(notes, ElementsAre(StartsWith("b.config:6: thread_pool_name has no effect")));
}

TEST(BatchingParameters, FieldsThatAreNotThereStay) {
  ModelConfig model;
  model.workers = 5;
  model.batching.batch_timeout_micros = 77;
  const BatchingConfig before = model.batching;
  std::vector<std::string> notes;
  ASSERT_TRUE(ParseBatchingParameters("", "b", &model, &notes).ok());
  EXPECT_EQ(model.workers, 5);
  EXPECT_EQ(model.batching, before);
  ASSERT_TRUE(ParseBatchingParameters("allowed_batch_sizes: [2, 4]", "b", &model, &notes).ok());
  EXPECT_EQ(model.batching.max_batch_size, 4);
}

TEST(BatchingParameters, MistakesNameLineAndRange) {
  ModelConfig model;
  std::vector<std::string> notes;
  EXPECT_THAT(
      MistakesOf(ParseBatchingParameters("max_batch_size { value: 0 }\n"
                                         "num_batch_threads { value: -1 }\n"
                                         "allowed_batch_sizes: [4, 2]\n",
                                         "b", &model, &notes)),
      ElementsAre("b:1: max_batch_size: expected { value: N } with N of at least 1, got 0",
                  StartsWith("b:2: num_batch_threads: expected { value: N } with N of at least 1"),
                  StartsWith("b:3: allowed_batch_sizes: 2 follows 4")));
  EXPECT_EQ(model, ModelConfig()) << "nothing of a wrong file is taken";
  EXPECT_THAT(
      MistakesOf(ParseBatchingParameters("max_batch_siz { value: 3 }", "b", &model, &notes)),
      ElementsAre(HasSubstr("nearest: 'max_batch_size'")));
}

// TensorFlow Serving runs with these.
TEST(BatchingParameters, MoreThanIsPossibleMeansTheMost) {
  ModelConfig model;
  std::vector<std::string> notes;
  const absl::Status status = ParseBatchingParameters(R"(max_batch_size { value: 4294967296 }
batch_timeout_micros { value: 9223372036854775807 }
max_enqueued_batches { value: 2000000000 }
num_batch_threads { value: 2000 }
max_execution_batch_size { value: 70000 }
allowed_batch_sizes: [8, 65536, 66000, 70000])",
                                                      "b", &model, &notes);
  ASSERT_TRUE(status.ok()) << status;
  const BatchingConfig& b = model.batching;
  EXPECT_EQ(b.max_batch_size, 65536);
  EXPECT_EQ(b.batch_timeout_micros, 60'000'000);
  EXPECT_EQ(b.max_enqueued_batches, 1'000'000);
  EXPECT_EQ(b.max_execution_batch_size, 65536);
  EXPECT_EQ(model.workers, 1024);
  EXPECT_THAT(b.allowed_batch_sizes, ElementsAre(8, 65536));
  EXPECT_THAT(notes, testing::SizeIs(7));
  EXPECT_THAT(notes, testing::Contains("b:1: max_batch_size: 4294967296 means 65536 here"));
  for (const char* field : {"max_batch_size {}", "num_batch_threads {}"})
    EXPECT_THAT(MistakesOf(ParseBatchingParameters(field, "b", &model, &notes)),
                ElementsAre(StartsWith("b:1: ")))
        << field;
}

}  // namespace
}  // namespace floe
