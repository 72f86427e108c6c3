#include "server/batching/plan_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "server/batching/batcher.h"
#include "server/batching/test_models.h"
#include "server/batching/warm_up.h"

namespace floe::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A model behind a batcher that is stepped by hand.
struct Served {
  explicit Served(const char* graph, int64_t max_rows = 8) : model(CompileText(graph)) {
    auto owned = std::make_unique<PlanRunner>(1, 1, max_rows);
    runner = owned.get();
    batcher = std::make_unique<Batcher>(
        std::move(owned),
        Batcher::Options{.limits = {.max_rows = max_rows}, .threads = 0, .clock = &clock});
  }
  // Steps until nothing is left; how many runs it took.
  int Drain() {
    int runs = 0;
    while (batcher->Step()) ++runs;
    return runs;
  }
  FakeClock clock;
  ModelHandle model;
  PlanRunner* runner;
  std::unique_ptr<Batcher> batcher;
};

TEST(PlanRunner, RowsOfSeveralCallersShareARun) {
  Served s(kTwiceGraph);
  FloatCall a({{Shape({1, 2}), {1, -2}}}), b({{Shape({2, 2}), {3, 4, 5, 6}}}),
      c({{Shape({1, 2}), {-7, 8}}});
  for (FloatCall* call : {&a, &b, &c}) s.batcher->Submit(call->Request(s.model));
  EXPECT_EQ(s.Drain(), 1);
  EXPECT_THAT(a.result, ElementsAre(2, 0));
  EXPECT_EQ(a.shape, Shape({1, 2}));
  EXPECT_THAT(b.result, ElementsAre(6, 8, 10, 12));
  EXPECT_EQ(b.shape, Shape({2, 2}));
  EXPECT_THAT(c.result, ElementsAre(0, 16));
}

TEST(PlanRunner, UnalignedBytesAreCopied) {
  Served s(kTwiceGraph);
  FloatCall call({{Shape({1, 2}), {}}});
  std::vector<char> bytes(1 + 2 * sizeof(float));
  const float values[2] = {3, 4};
  std::memcpy(bytes.data() + 1, values, sizeof values);
  auto request = call.Request(s.model);
  request->inputs[0].data = bytes.data() + 1;
  s.batcher->Submit(std::move(request));
  s.Drain();
  EXPECT_THAT(call.result, ElementsAre(6, 8));
}

TEST(PlanRunner, LargeAndEmptyRequestsRunAlone) {
  Served s(kTwiceGraph, 2);
  FloatCall small({{Shape({1, 2}), {1, 1}}}), large({{Shape({3, 2}), {1, 2, 3, 4, 5, 6}}}),
      empty({{Shape({0, 2}), {}}});
  for (FloatCall* call : {&small, &large, &empty}) s.batcher->Submit(call->Request(s.model));
  EXPECT_EQ(s.Drain(), 3);
  EXPECT_THAT(small.result, ElementsAre(2, 2));
  EXPECT_THAT(large.result, ElementsAre(2, 4, 6, 8, 10, 12));
  ASSERT_TRUE(empty.status.ok()) << empty.status;
  EXPECT_EQ(empty.shape, Shape({0, 2}));
}

TEST(PlanRunner, ALargeRequestIsComputedInPieces) {
  Served s(kScaleGraph, 4);
  std::vector<float> x(2 * 11), expected;
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  for (const float value : x) expected.push_back(3 * value);
  FloatCall call({{Shape({11, 2}), x}, {Shape(), {3}}});
  s.batcher->Submit(call.Request(s.model));
  EXPECT_EQ(s.Drain(), 1);
  ASSERT_TRUE(call.status.ok()) << call.status;
  EXPECT_EQ(call.shape, Shape({11, 2}));
  EXPECT_EQ(call.result, expected);
  // Memory for one piece, not for the request: x and y of 4 rows, each padded to a cache line, and
  // the scale.
  EXPECT_LE(s.runner->context(0).arena_bytes(), 4u * 64 * 2 + 2 * 64);

  FloatCall after({{Shape({1, 2}), {1, 2}}, {Shape(), {3}}});
  s.batcher->Submit(after.Request(s.model));
  s.Drain();
  EXPECT_THAT(after.result, ElementsAre(3, 6));
}

TEST(PlanRunner, ACallerWhoLeavesStopsItsOwnLargeRequest) {
  Served s(kTwiceGraph, 2);
  FloatCall call({{Shape({9, 2}), std::vector<float>(18, 1)}});
  auto request = call.Request(s.model);
  request->cancel = std::make_shared<CancelToken>();
  const auto cancel = request->cancel;
  Task task;
  task.request = std::move(request);
  ASSERT_TRUE(s.runner->Admit(&task).ok());
  cancel->Cancel();
  Task* const batch = &task;
  EXPECT_EQ(s.runner->Run(0, absl::MakeConstSpan(&batch, 1)).code(), absl::StatusCode::kCancelled);
}

TEST(PlanRunner, WrongShapesAreTheCallersError) {
  Served s(kTwiceGraph);
  FloatCall call({{Shape({1, 3}), {1, 2, 3}}});
  s.batcher->Submit(call.Request(s.model));
  EXPECT_EQ(call.status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(call.status.message()), HasSubstr("'x'"));
  EXPECT_EQ(call.answers, 1);
}

TEST(PlanRunner, InputsWithoutRowsAndInnerShapesSeparateBatches) {
  Served s(kScaleGraph);
  const auto call = [](Shape shape, std::vector<float> x, float scale) {
    return FloatCall({{std::move(shape), std::move(x)}, {Shape(), {scale}}});
  };
  FloatCall a = call(Shape({1, 2}), {1, 2}, 10), b = call(Shape({1, 2}), {3, 4}, 10),
            c = call(Shape({1, 2}), {5, 6}, 100), d = call(Shape({1, 1}), {7}, 10);
  for (FloatCall* one : {&a, &b, &c, &d}) s.batcher->Submit(one->Request(s.model));
  EXPECT_EQ(s.Drain(), 3) << "a with b; c has another scale; d another inner shape";
  EXPECT_THAT(a.result, ElementsAre(10, 20));
  EXPECT_THAT(b.result, ElementsAre(30, 40));
  EXPECT_THAT(c.result, ElementsAre(500, 600));
  EXPECT_THAT(d.result, ElementsAre(70));
}

TEST(PlanRunner, AModelThatMixesRowsRunsEachRequestAlone) {
  Served s(kCentredGraph);
  FloatCall a({{Shape({2, 1}), {1, 3}}}), b({{Shape({2, 1}), {10, 20}}});
  s.batcher->Submit(a.Request(s.model));
  s.batcher->Submit(b.Request(s.model));
  EXPECT_EQ(s.Drain(), 2);
  EXPECT_THAT(a.result, ElementsAre(-1, 1));
  EXPECT_THAT(b.result, ElementsAre(-5, 5));
}

TEST(WarmUp, MeasuresAndLeavesNoMemoryToGrow) {
  const ModelHandle model = CompileText(kTwiceGraph);
  PlanRunner runner(2, 1, 64);
  const auto report = WarmUp(*model, &runner, 64);
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ(report->costs.size(), 1u);
  EXPECT_EQ(report->costs[0].form, &model->Find("")->defaults_form());
  EXPECT_GT(report->slowest, Duration::zero());
  EXPECT_TRUE(report->notes.empty());
  const size_t bytes = runner.context(1).arena_bytes();
  EXPECT_GE(bytes, 64 * 2 * sizeof(float));
  EXPECT_EQ(runner.context(0).arena_bytes(), bytes);
  runner.AddSlots(1, 1);
  WarmUpSlots(*model, &runner, 2, 64);
  EXPECT_EQ(runner.context(2).arena_bytes(), bytes);
}

TEST(WarmUp, AnImpatientWarmUpStillGivesTheMemory) {
  const ModelHandle model = CompileText(kTwiceGraph);
  PlanRunner runner(1, 1, 64);
  const auto report = WarmUp(*model, &runner, 64, Duration::zero());
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_GE(runner.context(0).arena_bytes(), 64 * 2 * sizeof(float));
  EXPECT_GT(report->costs[0].per_row_us, 0);
}

TEST(WarmUp, UnknownInnerDimsAreGuessedButNotMeasured) {
  const ModelHandle model = CompileText(kScaleGraph);
  PlanRunner runner(1, 1, 4);
  const auto report = WarmUp(*model, &runner, 4);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->costs.empty());
}

TEST(PlanRunner, CheapRequestsAreMarked) {
  const ModelHandle model = CompileText(kTwiceGraph);
  PlanRunner runner(1, 1, 64);
  const auto is_cheap = [&](int64_t rows) {
    std::vector<float> values(2 * rows);
    FloatCall call({{Shape({rows, 2}), values}});
    Task task;
    task.request = call.Request(model);
    EXPECT_TRUE(runner.Admit(&task).ok());
    return task.cheap;
  };
  EXPECT_FALSE(is_cheap(1)) << "nothing measured";
  runner.SetCosts({{&model->Find("")->defaults_form(), 5, 2}}, 50);
  EXPECT_TRUE(is_cheap(1));
  EXPECT_TRUE(is_cheap(22));
  EXPECT_FALSE(is_cheap(23));
  runner.SetCosts({{&model->Find("")->defaults_form(), 5, 2}}, 0);
  EXPECT_FALSE(is_cheap(1));
}

}  // namespace
}  // namespace floe::server
