// Long steps end soon after their run is cancelled or its deadline has passed.
#include "kernels/cpu/run_watch.h"

#include <gtest/gtest.h>

#include "kernels/cpu/kernel_test_util.h"

namespace floe {
namespace {

// A second passes with each look. `at` raises `cancel`, which may be null, with that look.
class LookingClock : public Clock {
 public:
  LookingClock(int at, CancelToken* cancel) : at_(at), cancel_(cancel) {}
  TimePoint Now() const override {
    const int look = looks_.fetch_add(1) + 1;
    if (look == at_ && cancel_ != nullptr) cancel_->Cancel();
    return TimePoint(std::chrono::seconds(look));
  }
  int looks() const { return looks_.load(); }

 private:
  const int at_;
  CancelToken* const cancel_;
  mutable std::atomic<int> looks_{0};
};

struct Step {
  std::string op;
  std::vector<Shape> inputs;
  Attrs attrs;
  GemmBackend gemm = GemmBackend::kAuto;
};

Attrs Window(const std::vector<int64_t>& strides, const std::vector<int64_t>& ksize = {}) {
  Attrs attrs;
  attrs.Set("strides", strides);
  attrs.Set("padding", std::string("SAME"));
  if (!ksize.empty()) attrs.Set("ksize", ksize);
  return attrs;
}

Attrs Equation(const std::string& text) {
  Attrs attrs;
  attrs.Set("equation", text);
  return attrs;
}

// Each takes several slices on one thread.
std::vector<Step> LongSteps() {
  return {
      {"MatMul", {Shape({1024, 512}), Shape({512, 512})}, {}},
      {"MatMul", {Shape({1, 4096}), Shape({4096, 4096})}, {}},  // packs long
      {"MatMul", {Shape({300, 300}), Shape({300, 300})}, {}, GemmBackend::kReference},
      {"BatchMatMul", {Shape({1000, 4, 4}), Shape({1000, 4, 4})}, {}},
      {"Einsum", {Shape({1024, 512}), Shape({512, 512})}, Equation("ij,jk->ik")},
      {"Einsum", {Shape({160, 160}), Shape({160, 160})}, Equation("ij,jk->ijk")},
      {"Conv2D", {Shape({1, 96, 96, 64}), Shape({3, 3, 64, 64})}, Window({1, 1, 1, 1})},
      {"Conv2D", {Shape({200, 4, 4, 2}), Shape({3, 3, 2, 2})}, Window({1, 1, 1, 1})},
      {"Conv2D",
       {Shape({1, 40, 40, 16}), Shape({3, 3, 16, 16})},
       Window({1, 1, 1, 1}),
       GemmBackend::kReference},
      {"Conv3D", {Shape({1, 20, 24, 24, 16}), Shape({3, 3, 3, 16, 16})}, Window({1, 1, 1, 1, 1})},
      {"DepthwiseConv2dNative",
       {Shape({1, 256, 256, 32}), Shape({3, 3, 32, 1})},
       Window({1, 1, 1, 1})},
      {"AvgPool", {Shape({1, 128, 128, 8})}, Window({1, 1, 1, 1}, {1, 15, 15, 1})},
  };
}

void ExpectEnds(const Step& step, int threads, int at, absl::StatusCode code) {
  SCOPED_TRACE(testing::Message() << step.op << " of " << step.inputs[0].ToString() << " on "
                                  << threads << " threads");
  std::vector<Tensor> inputs;
  for (const Shape& shape : step.inputs) inputs.push_back(RandomTensor(shape, 1));
  RunOptions options;
  options.threads = threads;
  options.kernels.gemm = step.gemm;
  CancelToken cancel;
  const LookingClock clock(at, code == absl::StatusCode::kCancelled ? &cancel : nullptr);
  Budget budget;
  budget.SetCancel(&cancel);
  budget.SetDeadline(
      TimePoint(std::chrono::seconds(code == absl::StatusCode::kCancelled ? 1'000'000 : at)),
      &clock);
  const BudgetScope scope(&budget);
  const auto result = RunKernel(step.op, step.attrs, inputs, options);
  EXPECT_EQ(result.status().code(), code) << result.status();
  // Each thread may be in its slice, and the status is asked for once more.
  EXPECT_LE(clock.looks(), at + 2 * threads + 2);
}

TEST(RunWatch, LongStepsEndAtTheDeadline) {
  for (const Step& step : LongSteps()) {
    for (int threads : {1, 4}) ExpectEnds(step, threads, 2, absl::StatusCode::kDeadlineExceeded);
  }
}

TEST(RunWatch, LongStepsEndWhenTheRunIsCancelled) {
  for (const Step& step : LongSteps()) {
    for (int threads : {1, 4}) ExpectEnds(step, threads, 2, absl::StatusCode::kCancelled);
  }
}

TEST(RunWatch, WithoutABudgetNothingStops) {
  kernels::RunWatch watch;
  EXPECT_FALSE(watch.Stopped());
  EXPECT_TRUE(watch.status().ok());
}

}  // namespace
}  // namespace floe
