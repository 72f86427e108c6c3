#include "server/batching/prepare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>

#include "server/batching/plan_runner.h"
#include "server/batching/test_models.h"

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
  config.batching.preferred_batch_size = {8, 16};
  config.batching.max_enqueued_batches = 3;
  config.batching.max_enqueued_bytes = 1000;
  config.batching.batch_timeout_micros = 7;
  const auto setup = PrepareBatcher(*model, config);
  ASSERT_TRUE(setup.ok()) << setup.status();
  EXPECT_EQ(setup->options.limits.max_rows, 16);
  EXPECT_THAT(setup->options.limits.preferred, ElementsAre(8, 16));
  EXPECT_EQ(setup->options.limits.max_queued_rows, 96);
  EXPECT_FALSE(setup->options.limits.tasks_are_rows);
  EXPECT_EQ(setup->options.limits.max_bytes, 1000u);
  EXPECT_EQ(setup->options.limits.timeout, std::chrono::microseconds(7));
  EXPECT_EQ(setup->options.threads, 2);
  EXPECT_TRUE(setup->options.first_run);
  const auto& runner = static_cast<const PlanRunner&>(*setup->runner).options();
  EXPECT_EQ(runner.max_request_rows, 0);
  EXPECT_THAT(runner.allowed_rows, ElementsAre(4, 16));
  EXPECT_EQ(runner.inline_below_us, 0);
  config.batching.enable_large_batch_splitting = false;
  const auto whole = PrepareBatcher(*model, config);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(static_cast<const PlanRunner&>(*whole->runner).options().max_request_rows, 32);
}

TEST(Prepare, PadsNoFurtherThanARunGoes) {
  const ModelHandle model = CompileText(kTwiceGraph);
  ModelConfig config = Config();
  config.batching.max_batch_size = 64;
  config.batching.max_execution_batch_size = 16;
  config.batching.allowed_batch_sizes = {4, 32, 64};
  const auto setup = PrepareBatcher(*model, config);
  ASSERT_TRUE(setup.ok()) << setup.status();
  EXPECT_THAT(static_cast<const PlanRunner&>(*setup->runner).options().allowed_rows,
              ElementsAre(4, 16));
}

TEST(Prepare, WorkersDivideTheMemoryOfRuns) {
  const ModelHandle model = CompileText(kTwiceGraph);
  ModelConfig config = Config();
  config.workers = 4;
  const auto of_run = [&] {
    const auto setup = PrepareBatcher(*model, config, {.run_bytes = 4096});
    EXPECT_TRUE(setup.ok()) << setup.status();
    return static_cast<const PlanRunner&>(*setup->runner).options().max_run_bytes;
  };
  EXPECT_EQ(of_run(), 1024);
  config.max_run_bytes = 8192;
  EXPECT_EQ(of_run(), 8192);
}

TEST(Prepare, TheAnswerOfAFullQueueIsConfigured) {
  const ModelHandle model = CompileText(kTwiceGraph);
  ModelConfig config = Config();
  EXPECT_EQ(PrepareBatcher(*model, config)->options.full_status, absl::StatusCode::kUnavailable);
  config.batching_full_status = FullStatus::kResourceExhausted;
  EXPECT_EQ(PrepareBatcher(*model, config)->options.full_status,
            absl::StatusCode::kResourceExhausted);
}

TEST(Prepare, TheTimeOfWhatWaitsIsBoundedUnlessItIsZero) {
  const ModelHandle model = CompileText(kTwiceGraph);
  ModelConfig config = Config();
  EXPECT_EQ(PrepareBatcher(*model, config)->options.max_enqueued_time, std::chrono::seconds(5));
  config.batching.max_enqueued_micros = 0;
  EXPECT_EQ(PrepareBatcher(*model, config)->options.max_enqueued_time, Duration::max());
}

// A run would be split over other numbers of threads on other slots.
TEST(Prepare, AllSlotsHaveEquallyManyThreads) {
  const ModelHandle model = CompileText(kTwiceGraph);
  ModelConfig config = Config();
  config.inline_below_us = 1'000'000;
  for (const int64_t threads : {1, 2}) {
    config.intra_op_threads = threads;
    auto setup = PrepareBatcher(*model, config);
    ASSERT_TRUE(setup.ok()) << setup.status();
    auto& runner = static_cast<PlanRunner&>(*setup->runner);
    EXPECT_EQ(runner.slots() > setup->options.threads, threads == 1);
    for (int slot = 0; slot < runner.slots(); ++slot)
      EXPECT_EQ(runner.context(slot).pool().threads(), threads);
  }
}

TEST(Prepare, WithNothingConfiguredTheMeasurementChooses) {
  const ModelHandle model = CompileText(kTwiceGraph);
  ModelConfig config = Config();
  config.batching.max_batch_size = 0;
  const auto setup = PrepareBatcher(*model, config, {.patience = std::chrono::hours(1)});
  ASSERT_TRUE(setup.ok()) << setup.status();
  FloatCall call({{Shape({1, 2}), {1, 2}}});
  Task task;
  task.request = call.Request(model);
  ASSERT_TRUE(setup->runner->Admit(&task).ok());
  EXPECT_GT(task.max_rows, 1) << "a run of two rows costs about the same as one of one";
  EXPECT_LE(task.max_rows, setup->options.limits.max_rows);
  EXPECT_TRUE(setup->options.limits.tasks_are_rows);
  EXPECT_EQ(setup->options.limits.max_queued_rows, 4096);
  EXPECT_GT(setup->runner->Expect(task, 1), Duration::zero());
  ASSERT_EQ(setup->notes.size(), 1u);
  EXPECT_THAT(setup->notes[0], HasSubstr("batches of at most"));
}

TEST(Prepare, WorkersHaveTheirModelsWeightAndCpus) {
  const ModelHandle model = CompileText(kTwiceGraph);
  ModelConfig config = Config();
  config.cpu_set = {FindUsableCpus().cpus.back()};
  auto setup = PrepareBatcher(*model, config, {.weights = {.heaviest = 2}});
  ASSERT_TRUE(setup.ok()) << setup.status();
  Batcher batcher(std::move(setup->runner), std::move(setup->options));
  FloatCall call({{Shape({1, 2}), {1, 2}}});
  auto request = call.Request(model);
  int nice = 0;
  std::vector<int> cpus;
  std::string name(16, 0);
  request->done = [&](const absl::Status&, absl::Span<const TensorView>) {
    nice = getpriority(PRIO_PROCESS, 0);
    cpus = FindUsableCpus().cpus;
    pthread_getname_np(pthread_self(), name.data(), name.size());
  };
  batcher.Submit(std::move(request));
  batcher.Stop();
  EXPECT_EQ(nice, std::min(getpriority(PRIO_PROCESS, 0) + 3, 19));
  EXPECT_EQ(cpus, config.cpu_set);
  EXPECT_STREQ(name.c_str(), "w0:m");

  config.cpu_set = {1 << 14};
  EXPECT_THAT(std::string(PrepareBatcher(*model, config).status().message()),
              HasSubstr("cpu_set names CPUs"));
}

}  // namespace
}  // namespace floe::server
