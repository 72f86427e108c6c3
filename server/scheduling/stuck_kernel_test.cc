// A kernel that does not come back: its model's queue says so, and a neighbour goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "kernels/kernel.h"
#include "model/op_def.h"
#include "server/executor/plan_executor.h"
#include "server/executor/test_models_for_test.h"
#include "server/scheduling/scheduler.h"

namespace floe::server {
namespace {

std::atomic<bool> entered{false}, released{false};

// Copies; for a first value of 13 not before it is released.
class StuckKernel final : public Kernel {
 public:
  absl::Status Run(const KernelContext& ctx) const override {
    if (ctx.in(0).as<float>()[0] == 13) {
      entered = true;
      while (!released) std::this_thread::yield();
    }
    CopyElements(ctx.in(0), ctx.out(0).data);
    return absl::OkStatus();
  }
};

absl::StatusOr<std::unique_ptr<Kernel>> MakeStuck(const KernelArgs&) {
  return std::make_unique<StuckKernel>();
}
FLOE_REGISTER_KERNEL(StuckForTest, kCpu, MakeStuck, DType::kFloat32);
const OpRegistrar kStuckForTest(OpDef{
    .name = "StuckForTest",
    .min_inputs = 1,
    .max_inputs = 1,
    .infer = [](const InferContext& c) -> absl::StatusOr<std::vector<TensorType>> {
      return std::vector<TensorType>{{c.dtype(0), c.shape(0)}};
    },
    .rows = RowsElementwise,
    .tensorflow = {"StuckForTest"}});

constexpr char kStuckGraph[] = R"(
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: -1 } dim { size: 1 } } } } }
node { name: "y" op: "StuckForTest" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
)";

TEST(StuckKernel, ItsModelIsStuckAndANeighbourIsNot) {
  const ModelHandle stuck_model = CompileText(kStuckGraph), fine_model = CompileText(kTwiceGraph);
  ASSERT_NE(stuck_model, nullptr);
  const auto serve = [] {
    return std::make_unique<Scheduler>(
        std::make_unique<PlanExecutor>(1, 1, PlanExecutor::Options{}),
        Scheduler::Options{.threads = 1, .name = "m"});
  };
  const auto stuck = serve(), fine = serve();
  const auto is_stuck = [](const Scheduler& scheduler, Duration later) {
    return IsStuck(scheduler.Progress(), Clock::Steady().Now() + later);
  };
  FloatCall never({{Shape({1, 1}), {13}}}), behind({{Shape({1, 1}), {1}}}),
      beside({{Shape({1, 2}), {1, 2}}});
  stuck->Submit(never.MakeRequest(stuck_model));
  while (!entered) std::this_thread::yield();
  auto late = behind.MakeRequest(stuck_model);
  late.deadline = Clock::Steady().Now() + std::chrono::milliseconds(5);
  std::atomic<bool> answered{false};
  late.complete = [&](const absl::StatusOr<Outputs>& outputs, const Timings&) {
    EXPECT_EQ(outputs.status().code(), absl::StatusCode::kDeadlineExceeded);
    answered = true;
  };
  stuck->Submit(std::move(late));
  while (!answered) std::this_thread::yield();
  EXPECT_FALSE(is_stuck(*stuck, Duration::zero()));
  EXPECT_TRUE(is_stuck(*stuck, std::chrono::seconds(11)));
  const auto named = stuck->NewlyStuck(Clock::Steady().Now() + std::chrono::seconds(11));
  ASSERT_EQ(named.size(), 1u);
  EXPECT_EQ(named[0].what, "serving_default [rows,1], 1 rows, at node 'y' (StuckForTest)");

  fine->Submit(beside.MakeRequest(fine_model));
  fine->Stop();
  EXPECT_THAT(beside.result, testing::ElementsAre(2, 4));
  EXPECT_FALSE(is_stuck(*fine, std::chrono::hours(1)));

  released = true;
  stuck->Stop();
  EXPECT_THAT(never.result, testing::ElementsAre(13));
  EXPECT_FALSE(is_stuck(*stuck, std::chrono::hours(1)));
}

}  // namespace
}  // namespace floe::server
