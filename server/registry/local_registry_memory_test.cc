// What models may take of the memory, together and in one run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/executor/test_models_for_test.h"
#include "server/registry/local_registry.h"
#include "server/registry/local_registry_for_test.h"

namespace floe::server {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(RegistryTest, MemoryIsAdmittedOrRefusedWithNumbers) {
  Write("a/frozen.pb", TimesGraph(1));
  Write("b/frozen.pb", TimesGraph(1));
  LocalRegistry::Options options = Once();
  // A size that is measured, as without this, is not the same every time, nor are its plans' bytes.
  ModelConfig a = Config("a", "a"), b = Config("b", "b");
  a.batching.max_batch_size = b.batching.max_batch_size = 4;
  a.workers = b.workers = 1;
  int64_t one = 0;
  {
    LocalRegistry registry({a}, options, &health_);
    ASSERT_TRUE(registry.StartLoading().ok());
    registry.WaitUntilLoaded();
    one = registry.memory().in_use();
    EXPECT_GT(one, 0);
    registry.Stop();
    EXPECT_EQ(registry.memory().in_use(), 0);
  }
  options.lifecycle.memory_limit = {0, one + one / 2};
  LocalRegistry registry({a}, options, &health_);
  ASSERT_TRUE(registry.StartLoading().ok());
  registry.WaitUntilLoaded();
  ASSERT_TRUE(registry.Acquire("a", {}).ok());
  const absl::Status refused =
      registry.Reload({{a, b}, Clock::Steady().Now() + std::chrono::minutes(1)});
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("model 'b' version 1"), HasSubstr("it needs "),
                    HasSubstr(absl::StrCat(one + one / 2)), HasSubstr("memory_limit")));
  EXPECT_TRUE(registry.Acquire("a", {}).ok());
  // In the place of a, b fits once a is gone.
  EXPECT_EQ(registry.Reload({{b}, Clock::Steady().Now() + std::chrono::minutes(1)}).code(),
            absl::StatusCode::kResourceExhausted)
      << "both are there for a while";
}

// A row of x and one of the answer take a MiB each. A batch of as many rows as suits the model
// would take far more than there is; what counts is whether smaller ones fit.
TEST_F(RegistryTest, BatchesAreKeptSmallWhereMemoryIsShort) {
  Write("a/frozen.pb",
        absl::StrReplaceAll(TimesGraph(1), {{"dim { size: 2 }", "dim { size: 262144 }"}}));
  ModelConfig a = Config("a", "a");
  a.workers = 1;
  for (const int64_t limit : {int64_t{8} << 20, int64_t{32} << 20}) {
    LocalRegistry::Options options = Once();
    options.lifecycle.memory_limit = {0, limit};
    LocalRegistry registry({a}, options, &health_);
    ASSERT_TRUE(registry.StartLoading().ok());
    registry.WaitUntilLoaded();
    EXPECT_TRUE(registry.Acquire("a", {}).ok());
    EXPECT_GE(registry.memory().in_use(), 2 << 20);
    EXPECT_LE(registry.memory().in_use(), limit);
    registry.Stop();
  }
  a.workers = 5;
  LocalRegistry::Options options = Once();
  options.lifecycle.memory_limit = {0, 8 << 20};
  LocalRegistry registry({a}, options, &health_);
  ASSERT_TRUE(registry.StartLoading().ok());
  registry.WaitUntilLoaded();
  const absl::Status refused = registry.Acquire("a", {}).status();
  EXPECT_THAT(std::string(refused.message()), HasSubstr("it needs 10.0 MiB"));
  registry.Stop();
}

// A run that would take the memory of the whole machine is refused, and a neighbour goes on.
TEST_F(RegistryTest, ARunMayTakeAShareOfTheMemory) {
  Write("greedy/frozen.pb", kOuterGraph);
  Write("fine/frozen.pb", kTwiceGraph);
  LocalRegistry::Options options = Once();
  options.lifecycle.memory_limit = {0, 64 << 20};
  ModelConfig greedy = Config("greedy", "greedy");
  greedy.workers = 2;
  LocalRegistry registry({greedy, Config("fine", "fine")}, options, &health_);
  ASSERT_TRUE(registry.StartLoading().ok());
  registry.WaitUntilLoaded();
  FloatCall huge({{Shape({3000}), std::vector<float>(3000)}}), usual({{Shape({1, 2}), {1, 2}}});
  for (const auto& [name, call] : {std::pair("greedy", &huge), std::pair("fine", &usual)}) {
    const auto served = registry.Acquire(name, {});
    ASSERT_TRUE(served.ok()) << served.status();
    (*served)->Submit(call->MakeRequest((*served)->model()));
  }
  registry.Stop();
  EXPECT_TRUE(absl::IsResourceExhausted(huge.status)) << huge.status;
  EXPECT_THAT(std::string(huge.status.message()),
              HasSubstr("max_run_bytes of the model is 16777216"));
  EXPECT_THAT(usual.result, ElementsAre(2, 4));
}

// Four constants of 64 MiB that take a few bytes in the file.
std::string SplatGraph() {
  std::string text = R"(
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: -1 } dim { size: 16777216 } } } } }
)";
  std::string sum = "x";
  for (int i = 0; i < 4; ++i) {
    absl::StrAppend(&text, "node { name: 'c", i, R"(' op: 'Const'
  attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'value' value { tensor { dtype: DT_FLOAT
    tensor_shape { dim { size: 16777216 } } float_val: 1 } } } }
node { name: 'y)",
                    i, "' op: 'Add' input: '", sum, "' input: 'c", i,
                    "' attr { key: 'T' value { type: DT_FLOAT } } }\n");
    sum = absl::StrCat("y", i);
  }
  return text;
}

TEST_F(RegistryTest, WhatAFileUnfoldsToIsCounted) {
  Write("a/frozen.pb", SplatGraph());
  LocalRegistry::Options options = Once();
  options.lifecycle.memory_limit = {0, int64_t{150} << 20};
  LocalRegistry registry({Config("a", "a")}, options, &health_);
  ASSERT_TRUE(registry.StartLoading().ok());
  registry.WaitUntilLoaded();
  const absl::Status refused = registry.Acquire("a", {}).status();
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("'a'"), HasSubstr("it needs 64.0 MiB"),
                    HasSubstr("memory_limit is 150.0 MiB")));
  EXPECT_EQ(registry.memory().in_use(), 0) << "all of it is given back";
  registry.Stop();
}

// Many rows at once take memory that others' weights have taken: the caller is told, and nobody
// else notices.
TEST_F(RegistryTest, ARunPastTheLimitFailsForItsCallerAlone) {
  Write("a/frozen.pb",
        absl::StrReplaceAll(kCentredGraph,
                            {{"dim { size: 1 } } } } }\nnode { name: \"axis\"",
                              "dim { size: 262144 } } } } }\nnode { name: \"axis\""}}));
  Write("b/frozen.pb", kTwiceGraph);
  LocalRegistry::Options options = Once();
  options.lifecycle.memory_limit = {0, int64_t{64} << 20};
  ModelConfig a = Config("a", "a"), b = Config("b", "b");
  a.workers = b.workers = 1;
  a.max_run_bytes = int64_t{1} << 30;
  LocalRegistry registry({a, b}, options, &health_);
  ASSERT_TRUE(registry.StartLoading().ok());
  registry.WaitUntilLoaded();
  const auto greedy = registry.Acquire("a", {}), fine = registry.Acquire("b", {});
  ASSERT_TRUE(greedy.ok()) << greedy.status();
  ASSERT_TRUE(fine.ok()) << fine.status();
  FloatCall many({{Shape({60, 262144}), std::vector<float>(60 * 262144)}});
  Answer(greedy->get(), &many);
  EXPECT_TRUE(absl::IsResourceExhausted(many.status)) << many.status;
  EXPECT_THAT(std::string(many.status.message()), HasSubstr("memory_limit is 64.0 MiB"));
  FloatCall few({{Shape({1, 262144}), std::vector<float>(262144)}}),
      usual({{Shape({1, 2}), {1, 2}}});
  Answer(greedy->get(), &few);
  EXPECT_TRUE(few.status.ok()) << few.status;
  Answer(fine->get(), &usual);
  EXPECT_THAT(usual.result, ElementsAre(2, 4));
  EXPECT_LE(registry.memory().in_use(), int64_t{64} << 20);
  registry.Stop();
}

}  // namespace
}  // namespace floe::server
