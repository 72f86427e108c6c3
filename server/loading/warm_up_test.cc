// Warm-ups of a model whose runs do what the test says.
#include "server/loading/warm_up.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "kernels/kernel.h"
#include "model/op_def.h"
#include "server/executor/test_models_for_test.h"

namespace floe::server {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::function<absl::Status(const KernelContext&)> on_run;

class ScriptedKernel final : public Kernel {
 public:
  absl::Status Run(const KernelContext& ctx) const override {
    CopyElements(ctx.in(0), ctx.out(0).data);
    return on_run(ctx);
  }
};

absl::StatusOr<std::unique_ptr<Kernel>> Make(const KernelArgs&) {
  return std::make_unique<ScriptedKernel>();
}
FLOE_REGISTER_KERNEL(ScriptedForTest, kCpu, Make, DType::kFloat32);
const OpRegistrar kScriptedForTest(OpDef{
    .name = "ScriptedForTest",
    .min_inputs = 1,
    .max_inputs = 1,
    .infer = [](const InferContext& c) -> absl::StatusOr<std::vector<TensorType>> {
      return std::vector<TensorType>{{c.dtype(0), c.shape(0)}};
    },
    .rows = RowsElementwise,
    .tensorflow = {"ScriptedForTest"}});

constexpr char kScriptedGraph[] = R"(
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: -1 } dim { size: 1 } } } } }
node { name: "y" op: "ScriptedForTest" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
)";

// As a loop that never ends does.
absl::Status UntilStopped() {
  while (CheckRunTime().ok()) std::this_thread::yield();
  return CheckRunTime();
}

class WarmUpTest : public testing::Test {
 protected:
  ~WarmUpTest() override { on_run = nullptr; }
  const ModelHandle model_ = CompileText(kScriptedGraph);
  PlanExecutor executor_{1, 1, {.max_rows = 4}};
};

TEST_F(WarmUpTest, ARunThatNeverEndsIsSkipped) {
  on_run = [](const KernelContext&) { return UntilStopped(); };
  const auto report = WarmUp(*model_, &executor_, {.limits = {.longest = milliseconds(1)}});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->costs, IsEmpty());
  EXPECT_THAT(report->notes, ElementsAre(HasSubstr("skipped: a run took longer than 0.001 s")));
}

TEST_F(WarmUpTest, ARecordedRequestThatNeverEndsFails) {
  on_run = [](const KernelContext&) { return UntilStopped(); };
  FloatCall call({{Shape({1, 1}), {0}}});
  WarmUpReport report;
  const absl::Status status =
      WarmUpWith(*call.Ask(model_), 1, {.longest = milliseconds(1)}, &executor_, &report);
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("a run took longer than 0.001 s"));
}

TEST_F(WarmUpTest, ALoadThatIsGivenUpEnds) {
  CancelToken given_up;
  on_run = [&](const KernelContext&) {
    given_up.Cancel();
    return UntilStopped();
  };
  const WarmUpLimits limits{.longest = hours(1), .cancel = &given_up};
  EXPECT_TRUE(absl::IsCancelled(WarmUp(*model_, &executor_, {.limits = limits}).status()));
}

TEST_F(WarmUpTest, WhatIsQuickRunsFirstOnTheThreadsThatServe) {
  int runs = 0;
  on_run = [&](const KernelContext&) {
    ++runs;
    return absl::OkStatus();
  };
  auto report = WarmUp(*model_, &executor_, {});
  ASSERT_TRUE(report.ok()) << report.status();
  runs = 0;
  FirstRuns(*report, &executor_, {})(0);
  EXPECT_EQ(runs, 1);
  report->costs[0].curve = CostCurve({{1, 5000}});
  FirstRuns(*report, &executor_, {})(0);
  EXPECT_EQ(runs, 1);
}

TEST_F(WarmUpTest, ATrialRunsAndChoosesNothing) {
  std::vector<int64_t> rows;
  on_run = [&](const KernelContext& ctx) {
    rows.push_back(ctx.in(0).shape.dim(0));
    return absl::OkStatus();
  };
  const auto report = WarmUp(*model_, &executor_, {.trial = true});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(rows, ElementsAre(1, 8));
  EXPECT_EQ(report->costs.at(0).max_rows, 0);
  EXPECT_EQ(executor_.context(0).arena_bytes(), 0u);
}

// However long runs take: the same file has the same batch size at every start.
TEST_F(WarmUpTest, WhatRunsTakeChangesNoEstimate) {
  const auto warmed_up = [&](Duration run) {
    on_run = [run](const KernelContext&) {
      for (const TimePoint end = Clock::Steady().Now() + run; Clock::Steady().Now() < end;) {
      }
      return absl::OkStatus();
    };
    PlanExecutor executor(1, 1, {.max_rows = 256});
    auto report = WarmUp(*model_, &executor, {.max_rows = 256, .choose_rows = true});
    EXPECT_TRUE(report.ok()) << report.status();
    return *std::move(report);
  };
  const WarmUpReport quick = warmed_up(Duration::zero()), slow = warmed_up(milliseconds(30));
  EXPECT_GE(slow.slowest, milliseconds(30));
  const RunCost &a = quick.costs.at(0), &b = slow.costs.at(0);
  EXPECT_EQ(a.max_rows, b.max_rows);
  EXPECT_EQ(a.batch_gain, b.batch_gain);
  ASSERT_EQ(a.curve.points().size(), b.curve.points().size());
  for (size_t i = 0; i < a.curve.points().size(); ++i)
    EXPECT_EQ(a.curve.points()[i].us, b.curve.points()[i].us);
}

// A load may be nicer than what serves: so are the helpers of its first runs, but not those
// that will serve.
TEST_F(WarmUpTest, FirstRunsAreAsNiceAsTheLoad) {
  std::vector<int> helpers;
  on_run = [&](const KernelContext& ctx) {
    const std::thread::id caller = std::this_thread::get_id();
    std::atomic<int> begun{0}, nice{-1};
    ctx.pool->ParallelFor(2, [&](int64_t) {
      for (++begun; begun < 2;) std::this_thread::yield();  // both take part
      if (std::this_thread::get_id() != caller) nice = getpriority(PRIO_PROCESS, 0);
    });
    helpers.push_back(nice);
    return absl::OkStatus();
  };
  const int usual = getpriority(PRIO_PROCESS, 0);
  std::thread load([&] {
    PlanExecutor executor(1, 2, {.max_rows = 4});
    setpriority(PRIO_PROCESS, 0, usual + 5);
    EXPECT_TRUE(WarmUp(*model_, &executor, {}).ok());
  });
  load.join();
  ASSERT_FALSE(helpers.empty());
  EXPECT_EQ(helpers.front(), std::min(usual + 5, 19));
  EXPECT_EQ(helpers.back(), usual);
}

}  // namespace
}  // namespace floe::server
