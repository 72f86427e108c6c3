#include "server/loading/prepare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "server/executor/plan_executor.h"
#include "server/executor/test_models_for_test.h"

namespace floe::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ModelConfig Config() {
  ModelConfig config;
  config.name = "m";
  config.inline_below_us = 0;
  return config;
}

TEST(Prepare, TakesItsLimitsFromTheConfiguration) {
  const ModelHandle model = CompileText(kTwiceGraph);
  ModelConfig config = Config();
  config.workers = 2;
  config.batching.max_batch_size = 32;
  config.batching.max_execution_batch_size = 16;
  config.batching.allowed_batch_sizes = {4, 16};
  config.batching.max_enqueued_batches = 3;
  config.batching.max_enqueued_bytes = 1000;
  config.batching.batch_timeout_micros = 7;
  const auto setup = PrepareScheduler(*model, config);
  ASSERT_TRUE(setup.ok()) << setup.status();
  EXPECT_EQ(setup->options.limits.max_rows, 16);
  EXPECT_EQ(setup->options.limits.max_queued_rows, 96);
  EXPECT_FALSE(setup->options.limits.requests_are_rows);
  EXPECT_EQ(setup->options.limits.max_bytes, 1000u);
  EXPECT_EQ(setup->options.limits.timeout, std::chrono::microseconds(7));
  EXPECT_EQ(setup->options.threads, 2);
  EXPECT_TRUE(setup->options.first_run);
  const auto& executor = static_cast<const PlanExecutor&>(*setup->executor).options();
  EXPECT_EQ(executor.max_request_rows, 0);
  EXPECT_THAT(executor.allowed_rows, ElementsAre(4, 16));
  EXPECT_EQ(executor.inline_below_us, 0);
  config.batching.enable_large_batch_splitting = false;
  const auto whole = PrepareScheduler(*model, config);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(static_cast<const PlanExecutor&>(*whole->executor).options().max_request_rows, 32);
}

TEST(Prepare, ARowIsEstimatedWhereItsShapeIsKnown) {
  const auto row_micros = [](const char* graph) {
    const auto setup = PrepareScheduler(*CompileText(graph), Config());
    EXPECT_TRUE(setup.ok()) << setup.status();
    return setup->options.estimates.at(0).row_micros;
  };
  EXPECT_GT(row_micros(kTwiceGraph), 0);
  EXPECT_EQ(row_micros(kScaleGraph), 0) << "of a guess";
}

TEST(Prepare, PadsNoFurtherThanARunGoes) {
  const ModelHandle model = CompileText(kTwiceGraph);
  ModelConfig config = Config();
  config.batching.max_batch_size = 64;
  config.batching.max_execution_batch_size = 16;
  config.batching.allowed_batch_sizes = {4, 32, 64};
  const auto setup = PrepareScheduler(*model, config);
  ASSERT_TRUE(setup.ok()) << setup.status();
  EXPECT_THAT(static_cast<const PlanExecutor&>(*setup->executor).options().allowed_rows,
              ElementsAre(4, 16));
}

TEST(Prepare, WorkersDivideTheMemoryOfRuns) {
  const ModelHandle model = CompileText(kTwiceGraph);
  ModelConfig config = Config();
  config.workers = 4;
  const auto of_run = [&] {
    const auto setup = PrepareScheduler(*model, config, {.run_bytes = 4096});
    EXPECT_TRUE(setup.ok()) << setup.status();
    return static_cast<const PlanExecutor&>(*setup->executor).options().max_run_bytes;
  };
  EXPECT_EQ(of_run(), 1024);
  config.max_run_bytes = 8192;
  EXPECT_EQ(of_run(), 8192);
}

TEST(Prepare, TheAnswerOfAFullQueueIsConfigured) {
  const ModelHandle model = CompileText(kTwiceGraph);
  ModelConfig config = Config();
  EXPECT_EQ(PrepareScheduler(*model, config)->options.full_status, absl::StatusCode::kUnavailable);
  config.batching_full_status = FullStatus::kResourceExhausted;
  EXPECT_EQ(PrepareScheduler(*model, config)->options.full_status,
            absl::StatusCode::kResourceExhausted);
}

TEST(Prepare, TheTimeOfWhatWaitsIsBoundedUnlessItIsZero) {
  const ModelHandle model = CompileText(kTwiceGraph);
  ModelConfig config = Config();
  EXPECT_EQ(PrepareScheduler(*model, config)->options.max_enqueued_time, std::chrono::seconds(5));
  config.batching.max_enqueued_micros = 0;
  EXPECT_EQ(PrepareScheduler(*model, config)->options.max_enqueued_time, Duration::max());
}

// A run would be split over other numbers of threads on other slots.
TEST(Prepare, AllSlotsHaveEquallyManyThreads) {
  const ModelHandle model = CompileText(kTwiceGraph);
  ModelConfig config = Config();
  config.inline_below_us = 1'000'000;
  for (const int64_t threads : {1, 2}) {
    config.intra_op_threads = threads;
    auto setup = PrepareScheduler(*model, config);
    ASSERT_TRUE(setup.ok()) << setup.status();
    auto& executor = static_cast<PlanExecutor&>(*setup->executor);
    EXPECT_EQ(executor.slots() > setup->options.threads, threads == 1);
    for (int slot = 0; slot < executor.slots(); ++slot)
      EXPECT_EQ(executor.context(slot).pool().threads(), threads);
  }
}

TEST(Prepare, WithNothingConfiguredTheEstimateChooses) {
  const ModelHandle model = CompileText(kTwiceGraph);
  ModelConfig config = Config();
  config.batching.max_batch_size = 0;
  const auto setup = PrepareScheduler(*model, config);
  ASSERT_TRUE(setup.ok()) << setup.status();
  FloatCall call({{Shape({1, 2}), {1, 2}}});
  const auto asked = call.Ask(model);
  const auto binding = setup->executor->Bind(*asked);
  ASSERT_TRUE(binding.ok());
  EXPECT_GT(binding->max_rows, 1) << "a run of two rows costs about the same as one of one";
  EXPECT_LE(binding->max_rows, setup->options.limits.max_rows);
  EXPECT_TRUE(setup->options.limits.requests_are_rows);
  EXPECT_EQ(setup->options.limits.max_queued_rows, 4096);
  EXPECT_GT(setup->executor->Expect(Bound{asked.get(), *binding}, 1), Duration::zero());
  ASSERT_EQ(setup->notes.size(), 1u);
  EXPECT_THAT(setup->notes[0], HasSubstr("batches of at most"));
}

TEST(Prepare, WorkersHaveTheirModelsWeightAndCpus) {
  const ModelHandle model = CompileText(kTwiceGraph);
  ModelConfig config = Config();
  config.cpu_set = {FindUsableCpus().cpus.back()};
  auto setup = PrepareScheduler(*model, config, {.cpu_shares = {.heaviest = 2}});
  ASSERT_TRUE(setup.ok()) << setup.status();
  Scheduler scheduler(std::move(setup->executor), std::move(setup->options));
  FloatCall call({{Shape({1, 2}), {1, 2}}});
  auto request = call.MakeRequest(model);
  int nice = 0;
  std::vector<int> cpus;
  std::string name(16, 0);
  request.complete = [&](const absl::StatusOr<Outputs>&, const Timings&) {
    nice = getpriority(PRIO_PROCESS, 0);
    cpus = FindUsableCpus().cpus;
    pthread_getname_np(pthread_self(), name.data(), name.size());
  };
  scheduler.Submit(std::move(request));
  scheduler.Stop();
  EXPECT_EQ(nice, std::min(getpriority(PRIO_PROCESS, 0) + 3, 19));
  EXPECT_EQ(cpus, config.cpu_set);
  EXPECT_STREQ(name.c_str(), "w0:m");

  config.cpu_set = {1 << 14};
  EXPECT_THAT(std::string(PrepareScheduler(*model, config).status().message()),
              HasSubstr("cpu_set names CPUs"));
}

}  // namespace
}  // namespace floe::server
