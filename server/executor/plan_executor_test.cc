#include "server/executor/plan_executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <new>

#include "absl/strings/str_replace.h"
#include "server/executor/test_models_for_test.h"
#include "server/loading/warm_up.h"
#include "server/scheduling/scheduler.h"

namespace floe::server {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A model behind a scheduler that is stepped by hand.
struct Served {
  explicit Served(const char* graph, int64_t max_rows = 8)
      : Served(graph, PlanExecutor::Options{.max_rows = max_rows}) {}
  Served(const char* graph, const PlanExecutor::Options& options) : model(CompileText(graph)) {
    auto owned = std::make_unique<PlanExecutor>(1, 1, options);
    executor = owned.get();
    scheduler = std::make_unique<Scheduler>(
        std::move(owned),
        Scheduler::Options{
            .limits = {.max_rows = options.max_rows}, .threads = 0, .clock = &clock});
  }
  // Steps until nothing is left; how many runs it took.
  int Drain() {
    int runs = 0;
    while (scheduler->Step()) ++runs;
    return runs;
  }
  FakeClock clock;
  ModelHandle model;
  PlanExecutor* executor;
  std::unique_ptr<Scheduler> scheduler;
};

TEST(PlanExecutor, RowsOfSeveralCallersShareARun) {
  Served s(kTwiceGraph);
  FloatCall a({{Shape({1, 2}), {1, -2}}}), b({{Shape({2, 2}), {3, 4, 5, 6}}}),
      c({{Shape({1, 2}), {-7, 8}}});
  for (FloatCall* call : {&a, &b, &c}) s.scheduler->Submit(call->MakeRequest(s.model));
  EXPECT_EQ(s.Drain(), 1);
  EXPECT_THAT(a.result, ElementsAre(2, 0));
  EXPECT_EQ(a.shape, Shape({1, 2}));
  EXPECT_THAT(b.result, ElementsAre(6, 8, 10, 12));
  EXPECT_EQ(b.shape, Shape({2, 2}));
  EXPECT_THAT(c.result, ElementsAre(0, 16));
}

TEST(PlanExecutor, TheNextRunIsProfiled) {
  Served s(kTwiceGraph);
  const auto call = [&s](int64_t rows) {
    FloatCall one({{Shape({rows, 2}), std::vector<float>(static_cast<size_t>(2 * rows), 1)}});
    s.scheduler->Submit(one.MakeRequest(s.model));
    s.Drain();
    EXPECT_THAT(one.result, testing::Each(2));
  };
  call(1);
  EXPECT_EQ(s.executor->LastProfile(), nullptr) << "nobody asked";
  s.executor->ProfileNextRun();
  call(3);
  const auto profile = s.executor->LastProfile();
  ASSERT_NE(profile, nullptr);
  EXPECT_EQ(profile->rows, 3);
  EXPECT_EQ(profile->report.runs, 1);
  ASSERT_FALSE(profile->report.steps.empty());
  EXPECT_FALSE(profile->report.steps[0].op.empty());
  EXPECT_GT(profile->report.run_us, 0);
  call(2);
  EXPECT_EQ(s.executor->LastProfile(), profile) << "one run was asked for";
}

TEST(PlanExecutor, ARunBeyondItsMemoryIsRefusedAndOthersAreNot) {
  Served s(kOuterGraph, {.max_rows = 8, .max_run_bytes = 1 << 20});
  const auto outer = [&s](int64_t n) {
    FloatCall call({{Shape({n}), std::vector<float>(static_cast<size_t>(n))}});
    s.scheduler->Submit(call.MakeRequest(s.model));
    s.Drain();
    return call.status;
  };
  EXPECT_TRUE(outer(400).ok()) << "0.6 of 1 MiB";
  const absl::Status refused = outer(1000);
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("max_run_bytes of the model is 1048576"));
  EXPECT_TRUE(outer(400).ok());
}

// Neither the values of the run before nor an arena larger than the run needs.
TEST(PlanExecutor, WhatARunLeftBehindIsNotCountedForTheNext) {
  constexpr char kNonzeroGraph[] = R"(
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: -1 } } } } }
node { name: "where" op: "Where" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "y" op: "Cast" input: "where" attr { key: "SrcT" value { type: DT_INT64 } }
  attr { key: "DstT" value { type: DT_FLOAT } } }
)";
  Served s(kNonzeroGraph, {.max_rows = 8, .max_run_bytes = 1 << 20});
  const ModelHandle wide = CompileText(kScaleGraph);
  for (int i = 0; i < 2; ++i) {
    // 0.5 MB or more in the arena; then 0.7 MB of values and 0.2 MB in the arena.
    FloatCall first({{Shape({1, 120'000}), std::vector<float>(120'000)}, {Shape(), {2}}});
    s.scheduler->Submit(first.MakeRequest(wide));
    FloatCall second({{Shape({60'000}), std::vector<float>(60'000, 1)}});
    s.scheduler->Submit(second.MakeRequest(s.model));
    s.Drain();
    EXPECT_EQ(first.status, absl::OkStatus());
    EXPECT_EQ(second.status, absl::OkStatus());
  }
}

TEST(PlanExecutor, UnalignedBytesAreCopied) {
  Served s(kTwiceGraph);
  FloatCall call({{Shape({1, 2}), {}}});
  std::vector<char> bytes(1 + 2 * sizeof(float));
  const float values[2] = {3, 4};
  std::memcpy(bytes.data() + 1, values, sizeof values);
  const auto asked = call.Ask(s.model);
  asked->inputs[0].data = bytes.data() + 1;
  s.scheduler->Submit(call.MakeRequest(asked));
  s.Drain();
  EXPECT_THAT(call.result, ElementsAre(6, 8));
}

// A request whose rows are decoded when it runs; how often that was.
Request Pending(FloatCall* call, const ModelHandle& model, int input, int* decoded) {
  const auto asked = call->Ask(model);
  TensorView* const view = &asked->inputs[static_cast<size_t>(input)];
  asked->pending = std::make_unique<PendingInputs>([view, decoded, data = view->data] {
    ++*decoded;
    view->data = data;
    return absl::OkStatus();
  });
  view->data = nullptr;
  return call->MakeRequest(asked);
}

TEST(PlanExecutor, PendingInputsAreDecodedByTheRun) {
  Served s(kTwiceGraph, 2);
  int decoded = 0;
  FloatCall a({{Shape({1, 2}), {1, -2}}}), b({{Shape({1, 2}), {3, 4}}}),
      large({{Shape({5, 2}), {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}}});
  s.scheduler->Submit(a.MakeRequest(s.model));
  s.scheduler->Submit(Pending(&b, s.model, 0, &decoded));
  s.scheduler->Submit(Pending(&large, s.model, 0, &decoded));
  EXPECT_EQ(decoded, 0);
  EXPECT_EQ(s.Drain(), 4) << "a with b, and large in parts";
  EXPECT_EQ(decoded, 2);
  EXPECT_THAT(a.result, ElementsAre(2, 0));
  EXPECT_THAT(b.result, ElementsAre(6, 8));
  EXPECT_THAT(large.result, ElementsAre(2, 4, 6, 8, 10, 12, 14, 16, 18, 20));
}

TEST(PlanExecutor, APendingInputWithoutRowsIsNotCompared) {
  Served s(kScaleGraph);
  int decoded = 0;
  FloatCall a({{Shape({1, 1}), {1}}, {Shape(), {2}}}), b({{Shape({1, 1}), {3}}, {Shape(), {2}}});
  s.scheduler->Submit(a.MakeRequest(s.model));
  s.scheduler->Submit(Pending(&b, s.model, 1, &decoded));
  EXPECT_EQ(s.Drain(), 2);
  EXPECT_THAT(a.result, ElementsAre(2));
  EXPECT_THAT(b.result, ElementsAre(6));
}

TEST(PlanExecutor, PendingInputsWithoutMemoryFailTheirRequestOnly) {
  Served s(kTwiceGraph);
  FloatCall a({{Shape({1, 2}), {1, -2}}}), b({{Shape({1, 2}), {3, 4}}});
  const auto asked = b.Ask(s.model);
  asked->inputs[0].data = nullptr;
  asked->pending =
      std::make_unique<PendingInputs>([]() -> absl::Status { throw std::bad_alloc(); });
  s.scheduler->Submit(a.MakeRequest(s.model));
  s.scheduler->Submit(b.MakeRequest(asked));
  s.Drain();
  EXPECT_THAT(a.result, ElementsAre(2, 0));
  EXPECT_TRUE(absl::IsResourceExhausted(b.status)) << b.status;
}

TEST(PlanExecutor, LargeRequestsRunInPartsAndEmptyOnesAlone) {
  Served s(kTwiceGraph, 2);
  FloatCall small({{Shape({1, 2}), {1, 1}}}), large({{Shape({3, 2}), {1, 2, 3, 4, 5, 6}}}),
      empty({{Shape({0, 2}), {}}});
  for (FloatCall* call : {&small, &large, &empty}) s.scheduler->Submit(call->MakeRequest(s.model));
  EXPECT_EQ(s.Drain(), 4);
  EXPECT_THAT(small.result, ElementsAre(2, 2));
  EXPECT_THAT(large.result, ElementsAre(2, 4, 6, 8, 10, 12));
  ASSERT_TRUE(empty.status.ok()) << empty.status;
  EXPECT_EQ(empty.shape, Shape({0, 2}));
}

TEST(PlanExecutor, ALargeRequestIsComputedInPieces) {
  Served s(kScaleGraph, 4);
  std::vector<float> x(2 * 11), expected;
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  for (const float value : x) expected.push_back(3 * value);
  FloatCall call({{Shape({11, 2}), x}, {Shape(), {3}}});
  s.scheduler->Submit(call.MakeRequest(s.model));
  EXPECT_EQ(s.Drain(), 3);
  ASSERT_TRUE(call.status.ok()) << call.status;
  EXPECT_EQ(call.shape, Shape({11, 2}));
  EXPECT_EQ(call.result, expected);
  // Memory for one piece, not for the request: x and y of 4 rows, each padded to a cache line, and
  // the scale.
  EXPECT_LE(s.executor->context(0).arena_bytes(), 4u * 64 * 2 + 2 * 64);

  FloatCall after({{Shape({1, 2}), {1, 2}}, {Shape(), {3}}});
  s.scheduler->Submit(after.MakeRequest(s.model));
  s.Drain();
  EXPECT_THAT(after.result, ElementsAre(3, 6));
}

TEST(PlanExecutor, ARunEndsWhenItsLimitsSaySo) {
  Served s(kTwiceGraph, 2);
  FloatCall call({{Shape({2, 2}), std::vector<float>(4, 1)}});
  const auto asked = call.Ask(s.model);
  const auto binding = s.executor->Bind(*asked);
  ASSERT_TRUE(binding.ok());
  const Bound bound{asked.get(), *binding};
  const Bound* const batch[] = {&bound};
  CancelToken cancel;
  const auto run = [&](const RunLimits& limits) {
    return s.executor->Run(0, batch, limits).code();
  };
  EXPECT_EQ(run({.cancel = &cancel, .clock = &s.clock}), absl::StatusCode::kOk);
  EXPECT_EQ(run({.deadline = s.clock.Now() - milliseconds(1), .clock = &s.clock}),
            absl::StatusCode::kDeadlineExceeded);
  cancel.Cancel();
  EXPECT_EQ(run({.cancel = &cancel, .clock = &s.clock}), absl::StatusCode::kCancelled);
  EXPECT_EQ(run({}), absl::StatusCode::kOk) << "limits are of one run";
}

TEST(PlanExecutor, RunsArePaddedToAllowedSizes) {
  Served s(kTwiceGraph, {.max_rows = 8, .allowed_rows = {2, 8}});
  FloatCall one({{Shape({1, 2}), {1, 2}}}), three({{Shape({3, 2}), {1, 2, 3, 4, 5, 6}}}),
      two({{Shape({2, 2}), {7, 8, 9, 10}}}), many({{Shape({9, 2}), std::vector<float>(18, 3)}});
  const auto rows_run = [&s] { return s.executor->context(0).Output(0).shape.dim(0); };
  s.scheduler->Submit(one.MakeRequest(s.model));
  s.Drain();
  EXPECT_THAT(one.result, ElementsAre(2, 4));
  EXPECT_EQ(one.shape, Shape({1, 2}));
  EXPECT_EQ(rows_run(), 2);
  s.scheduler->Submit(three.MakeRequest(s.model));
  s.scheduler->Submit(two.MakeRequest(s.model));
  EXPECT_EQ(s.Drain(), 1);
  EXPECT_THAT(three.result, ElementsAre(2, 4, 6, 8, 10, 12));
  EXPECT_THAT(two.result, ElementsAre(14, 16, 18, 20));
  EXPECT_EQ(rows_run(), 8);
  s.scheduler->Submit(many.MakeRequest(s.model));
  EXPECT_EQ(s.Drain(), 2);
  EXPECT_EQ(many.result, std::vector<float>(18, 6));
  EXPECT_EQ(rows_run(), 2) << "8 rows and one";
  EXPECT_EQ(s.scheduler->Stats().batches.padded_rows, 1u + 3 + 1);

  // Where rows are mixed, others would change the answer.
  Served mixing(kCentredGraph, {.max_rows = 8, .allowed_rows = {4, 8}});
  FloatCall centred({{Shape({2, 1}), {1, 3}}});
  mixing.scheduler->Submit(centred.MakeRequest(mixing.model));
  mixing.Drain();
  EXPECT_THAT(centred.result, ElementsAre(-1, 1));
}

TEST(PlanExecutor, NonBatchDimsArePaddedWhereAsked) {
  Served s(kScaleGraph);
  ASSERT_TRUE(s.executor->PadNonBatchDims(*s.model, {{"x", -1}}).ok());
  FloatCall shorter({{Shape({2, 1}), {1, 2}}, {Shape(), {10}}}),
      longer({{Shape({1, 3}), {3, 4, 5}}, {Shape(), {10}}}),
      other_scale({{Shape({1, 2}), {6, 7}}, {Shape(), {100}}});
  for (FloatCall* call : {&shorter, &longer, &other_scale})
    s.scheduler->Submit(call->MakeRequest(s.model));
  EXPECT_EQ(s.Drain(), 2);
  EXPECT_THAT(shorter.result, ElementsAre(10, -10, -10, 20, -10, -10));
  EXPECT_EQ(shorter.shape, Shape({2, 3}));
  EXPECT_THAT(longer.result, ElementsAre(30, 40, 50));
  EXPECT_THAT(other_scale.result, ElementsAre(600, 700));

  EXPECT_THAT(std::string(s.executor->PadNonBatchDims(*s.model, {{"z", 0}}).message()),
              HasSubstr("input 'z'"));
}

// A part of a request, padded for its neighbours, would not fit its other parts.
TEST(PlanExecutor, ARequestInPartsIsNotPaddedForOthers) {
  Served s(kScaleGraph, {.max_rows = 2});
  ASSERT_TRUE(s.executor->PadNonBatchDims(*s.model, {}).ok());
  FloatCall parts({{Shape({3, 1}), {1, 2, 3}}, {Shape(), {10}}}),
      longer({{Shape({1, 2}), {4, 5}}, {Shape(), {10}}});
  s.scheduler->Submit(parts.MakeRequest(s.model));
  s.scheduler->Submit(longer.MakeRequest(s.model));
  s.Drain();
  EXPECT_TRUE(parts.status.ok()) << parts.status;
  EXPECT_THAT(parts.result, ElementsAre(10, 20, 30));
  EXPECT_THAT(longer.result, ElementsAre(40, 50));
}

TEST(PlanExecutor, TheQueueCountsWhatARequestHolds) {
  const ModelHandle model = CompileText(kTwiceGraph);
  PlanExecutor executor(1, 1, {});
  FloatCall call({{Shape({1, 2}), {1, 2}}});
  for (const size_t held : {0, 1000}) {
    const auto asked = call.Ask(model);
    asked->held_bytes = held;
    const auto binding = executor.Bind(*asked);
    ASSERT_TRUE(binding.ok());
    EXPECT_EQ(binding->bytes, held == 0 ? 2 * sizeof(float) : held);
  }
}

TEST(PlanExecutor, RequestsBeyondAConfiguredSizeAreRefused) {
  Served s(kTwiceGraph, {.max_rows = 4, .max_request_rows = 4});
  FloatCall fits({{Shape({4, 2}), std::vector<float>(8, 1)}}),
      large({{Shape({5, 2}), std::vector<float>(10, 1)}});
  s.scheduler->Submit(fits.MakeRequest(s.model));
  s.scheduler->Submit(large.MakeRequest(s.model));
  s.Drain();
  EXPECT_TRUE(fits.status.ok());
  EXPECT_EQ(large.status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(large.status.message()), HasSubstr("5 rows"));
}

TEST(PlanExecutor, WrongShapesAreTheCallersError) {
  Served s(kTwiceGraph);
  FloatCall call({{Shape({1, 3}), {1, 2, 3}}});
  s.scheduler->Submit(call.MakeRequest(s.model));
  EXPECT_EQ(call.status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(call.status.message()), HasSubstr("'x'"));
  EXPECT_EQ(call.answers, 1);
}

TEST(PlanExecutor, InputsWithoutRowsAndInnerShapesSeparateBatches) {
  Served s(kScaleGraph);
  const auto call = [](Shape shape, std::vector<float> x, float scale) {
    return FloatCall({{std::move(shape), std::move(x)}, {Shape(), {scale}}});
  };
  FloatCall a = call(Shape({1, 2}), {1, 2}, 10), b = call(Shape({1, 2}), {3, 4}, 10),
            c = call(Shape({1, 2}), {5, 6}, 100), d = call(Shape({1, 1}), {7}, 10);
  for (FloatCall* one : {&a, &b, &c, &d}) s.scheduler->Submit(one->MakeRequest(s.model));
  EXPECT_EQ(s.Drain(), 3) << "a with b; c has another scale; d other non-batch dimensions";
  EXPECT_THAT(a.result, ElementsAre(10, 20));
  EXPECT_THAT(b.result, ElementsAre(30, 40));
  EXPECT_THAT(c.result, ElementsAre(500, 600));
  EXPECT_THAT(d.result, ElementsAre(70));
}

TEST(PlanExecutor, AModelThatMixesRowsRunsEachRequestAlone) {
  Served s(kCentredGraph);
  FloatCall a({{Shape({2, 1}), {1, 3}}}), b({{Shape({2, 1}), {10, 20}}});
  s.scheduler->Submit(a.MakeRequest(s.model));
  s.scheduler->Submit(b.MakeRequest(s.model));
  EXPECT_EQ(s.Drain(), 2);
  EXPECT_THAT(a.result, ElementsAre(-1, 1));
  EXPECT_THAT(b.result, ElementsAre(-5, 5));
}

TEST(WarmUp, MeasuresAndLeavesNoMemoryToGrow) {
  const ModelHandle model = CompileText(kTwiceGraph);
  PlanExecutor executor(2, 1, {});
  const auto report = WarmUp(*model, &executor, {});
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ(report->costs.size(), 1u);
  EXPECT_EQ(report->costs[0].variant, &model->Find("")->default_variant());
  EXPECT_GT(report->slowest, Duration::zero());
  EXPECT_TRUE(report->notes.empty());
  const size_t bytes = executor.context(1).arena_bytes();
  EXPECT_GE(bytes, 64 * 2 * sizeof(float));
  EXPECT_EQ(executor.context(0).arena_bytes(), bytes);
  executor.AddSlots(1, 1);
  WarmUpSlots(*report, &executor, 2, {});
  EXPECT_EQ(executor.context(2).arena_bytes(), bytes);
}

TEST(WarmUp, UnknownNonBatchDimsAreGuessed) {
  const ModelHandle model = CompileText(kScaleGraph);
  PlanExecutor executor(1, 1, {.max_rows = 100});
  const auto report = WarmUp(*model, &executor, {.max_rows = 100, .choose_rows = true});
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ(report->costs.size(), 1u);
  EXPECT_FALSE(report->costs[0].exact);
  EXPECT_EQ(report->costs[0].max_rows, 64);
}

// Strings of any length, shapes that depend on values: what zeros take says nothing.
TEST(WarmUp, WhatDependsOnValuesIsNotExact) {
  constexpr const char* kInput =
      R"(node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: %s } }
        attr { key: "shape" value { shape { dim { size: -1 } dim { size: 2 } } } } } )";
  const auto is_exact = [&](const char* dtype, const char* rest) {
    const ModelHandle model =
        CompileText(absl::StrReplaceAll(kInput, {{"%s", dtype}}) + std::string(rest));
    PlanExecutor executor(1, 1, {});
    const auto report = WarmUp(*model, &executor, {});
    EXPECT_TRUE(report.ok()) << report.status();
    EXPECT_THAT(report->notes, ElementsAre());
    EXPECT_EQ(report->costs.size(), 1u);
    return !report->costs.empty() && report->costs[0].exact;
  };
  EXPECT_TRUE(is_exact("DT_FLOAT", R"(node { name: "y" op: "Neg" input: "x" })"));
  EXPECT_FALSE(is_exact("DT_FLOAT", R"(node { name: "y" op: "Where" input: "x" })"));
  EXPECT_FALSE(is_exact("DT_STRING", R"(node { name: "y" op: "StringLower" input: "x" })"));
}

TEST(WarmUp, EstimatesRunsOfMoreAndMoreRows) {
  const ModelHandle model = CompileText(kTwiceGraph);
  PlanExecutor executor(1, 1, {.max_rows = 100});
  const auto report = WarmUp(*model, &executor, {.max_rows = 100, .choose_rows = true});
  ASSERT_TRUE(report.ok()) << report.status();
  const RunCost& cost = report->costs.at(0);
  std::vector<int64_t> rows;
  for (const CostCurve::Point& point : cost.curve.points()) rows.push_back(point.rows);
  EXPECT_THAT(rows, ElementsAre(1, 4, 16, 64, 100));
  EXPECT_EQ(cost.max_rows, 100);
  const size_t row_bytes = 2 * sizeof(float);
  EXPECT_GE(executor.context(0).arena_bytes(), static_cast<size_t>(cost.max_rows) * row_bytes);

  PlanExecutor small(1, 1, {.max_rows = 100});
  const int64_t four_rows =
      (*model->Find("")->default_variant().Bind({Shape({1, 2})}))->ArenaBytes(4);
  const auto bounded =
      WarmUp(*model, &small, {.max_rows = 100, .choose_rows = true, .max_arena_bytes = four_rows});
  ASSERT_TRUE(bounded.ok());
  EXPECT_EQ(bounded->costs[0].curve.points().back().rows, 4);
}

// With two threads a run takes half as long.
TEST(WarmUp, ThreadsOfARunShareItsWork) {
  const ModelHandle model = CompileText(kTwiceGraph);
  const auto micros = [&](int threads) {
    PlanExecutor executor(1, threads, {});
    const auto report = WarmUp(*model, &executor, {});
    EXPECT_TRUE(report.ok()) << report.status();
    return report->costs.at(0).curve.Micros(64);
  };
  EXPECT_EQ(micros(2), micros(1) / 2);
}

TEST(PlanExecutor, QuickRequestsAreMarked) {
  const ModelHandle model = CompileText(kTwiceGraph);
  const CompiledSignature* variant = &model->Find("")->default_variant();
  PlanExecutor executor(1, 1, {.inline_below_us = 50});
  const auto is_quick = [&](int64_t rows) {
    std::vector<float> values(2 * rows);
    FloatCall call({{Shape({rows, 2}), values}});
    const auto asked = call.Ask(model);
    const auto binding = executor.Bind(*asked);
    EXPECT_TRUE(binding.ok());
    return binding->quick;
  };
  EXPECT_FALSE(is_quick(1)) << "nothing is known";
  const CostCurve curve({{1, 7}, {64, 133}});  // 5 us and 2 us a row
  executor.SetCosts({{variant, curve}});
  EXPECT_TRUE(is_quick(1));
  EXPECT_TRUE(is_quick(22));
  EXPECT_FALSE(is_quick(23));
  executor.SetCosts({{variant, curve, /*exact=*/false}});
  EXPECT_FALSE(is_quick(1));
}

TEST(PlanExecutor, BindingsSayWhetherTheEstimateIsOfTheirShapes) {
  const ModelHandle model = CompileText(kTwiceGraph);
  PlanExecutor executor(1, 1, {});
  for (const bool exact : {true, false}) {
    executor.SetCosts({{&model->Find("")->default_variant(), CostCurve({{1, 7}}), exact}});
    FloatCall call({{Shape({1, 2}), {1, 2}}});
    const auto asked = call.Ask(model);
    const auto binding = executor.Bind(*asked);
    ASSERT_TRUE(binding.ok());
    EXPECT_EQ(binding->estimated, exact);
  }
}

TEST(PlanExecutor, ExpectsWhatIsEstimatedForTheRowsItRuns) {
  const ModelHandle model = CompileText(kTwiceGraph);
  PlanExecutor executor(1, 1, {.allowed_rows = {4, 64}});
  executor.SetCosts({{&model->Find("")->default_variant(), CostCurve({{1, 7}, {64, 133}})}});
  FloatCall call({{Shape({1, 2}), {1, 2}}});
  const auto asked = call.Ask(model);
  const auto binding = executor.Bind(*asked);
  ASSERT_TRUE(binding.ok());
  const Bound bound{asked.get(), *binding};
  EXPECT_EQ(executor.Expect(bound, 1), std::chrono::microseconds(13)) << "4 rows";
  EXPECT_EQ(executor.Expect(bound, 5), std::chrono::microseconds(133));
}

}  // namespace
}  // namespace floe::server
