// Long steps end soon after their run is cancelled or its deadline has passed.
#include "kernels/cpu/run_watch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "kernels/cpu/kernel_test_util.h"

namespace floe {
namespace {

// A second passes with each look. The look `at` raises `cancel`, which may be null, before another
// thread can look.
class LookingClock : public Clock {
 public:
  LookingClock(int at, CancelToken* cancel) : at_(at), cancel_(cancel) {}
  TimePoint Now() const override {
    absl::MutexLock lock(&mutex_);
    ++looks_;
    if (looks_ == at_ && cancel_ != nullptr) cancel_->Cancel();
    return TimePoint(std::chrono::seconds(looks_));
  }
  int looks() const {
    absl::MutexLock lock(&mutex_);
    return looks_;
  }

 private:
  const int at_;
  CancelToken* const cancel_;
  mutable absl::Mutex mutex_;
  mutable int looks_ ABSL_GUARDED_BY(mutex_) = 0;
};

template <typename T>
Tensor Filled(DType dtype, const Shape& shape, const std::vector<T>& values) {
  Tensor tensor = Tensor::Allocate(dtype, shape);
  std::copy(values.begin(), values.end(), static_cast<T*>(tensor.mutable_data()));
  return tensor;
}

struct Step {
  std::string op;
  std::vector<Shape> inputs;
  Attrs attrs;
  GemmBackend gemm = GemmBackend::kAuto;
  std::vector<std::vector<int32_t>> constants = {};  // inputs behind the others
  uint64_t const_mask = 0;                           // of `inputs`
};

Step Resize(const std::string& op) {
  return {.op = op, .inputs = {Shape({1, 64, 64, 8})}, .constants = {{1024, 512}}};
}

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

// Each takes several slices on one thread, and on four threads more than one each.
std::vector<Step> LongSteps() {
  return {
      {"MatMul", {Shape({1024, 512}), Shape({512, 512})}, {}},
      {"MatMul", {Shape({1, 4096}), Shape({4096, 4096})}, {}},  // packs long
      {"MatMul", {Shape({300, 300}), Shape({300, 300})}, {}, GemmBackend::kReference},
      {"BatchMatMul", {Shape({1000, 4, 4}), Shape({1000, 4, 4})}, {}},
      {"Einsum", {Shape({1024, 512}), Shape({512, 512})}, Equation("ij,jk->ik")},
      {"Einsum", {Shape({160, 160}), Shape({160, 160})}, Equation("ij,jk->ijk")},
      {"Conv2D", {Shape({1, 96, 96, 64}), Shape({3, 3, 64, 64})}, Window({1, 1, 1, 1})},
      {.op = "Conv2D",  // by Winograd's filtering
       .inputs = {Shape({1, 96, 96, 64}), Shape({3, 3, 64, 64})},
       .attrs = Window({1, 1, 1, 1}),
       .const_mask = 2},
      {"Conv2D", {Shape({200, 4, 4, 2}), Shape({3, 3, 2, 2})}, Window({1, 1, 1, 1})},
      {"Conv2D",
       {Shape({1, 40, 40, 16}), Shape({3, 3, 16, 16})},
       Window({1, 1, 1, 1}),
       GemmBackend::kReference},
      {"Conv3D", {Shape({1, 20, 24, 24, 16}), Shape({3, 3, 3, 16, 16})}, Window({1, 1, 1, 1, 1})},
      {"DepthwiseConv2dNative",
       {Shape({1, 256, 256, 32}), Shape({3, 3, 32, 1})},
       Window({1, 1, 1, 1})},
      Resize("ResizeBilinear"),
      Resize("ResizeBicubic"),
      Resize("ResizeNearestNeighbor"),
      Resize("ResizeArea"),
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
  for (const std::vector<int32_t>& numbers : step.constants) {
    options.const_mask |= uint64_t{1} << inputs.size();
    inputs.push_back(Filled(DType::kInt32, Shape({static_cast<int64_t>(numbers.size())}), numbers));
  }
  options.const_mask |= step.const_mask;
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

class Outputs : public OutputAllocator {
 public:
  absl::StatusOr<TensorView> Allocate(int, DType dtype, const Shape& shape) override {
    tensors_.push_back(Tensor::Allocate(dtype, shape));
    return tensors_.back().view();
  }

 private:
  std::vector<Tensor> tensors_;
};

// Those whose outputs are as large as the values say.
TEST(RunWatch, StepsThatChooseFromManyEndAtTheDeadline) {
  Attrs none;
  constexpr int kBoxes = 2000;
  const std::pair<std::string, std::vector<Tensor>> steps[] = {
      {"Unique", {RandomTensor(Shape({1 << 19}), 1)}},
      {"NonMaxSuppressionV3",
       {RandomTensor(Shape({kBoxes, 4}), 1), RandomTensor(Shape({kBoxes}), 2),
        Filled<int32_t>(DType::kInt32, Shape(), {kBoxes}),
        Filled<float>(DType::kFloat32, Shape(), {1}),
        Filled<float>(DType::kFloat32, Shape(), {-2})}},
  };
  for (const auto& [op, inputs] : steps) {
    SCOPED_TRACE(op);
    const LookingClock clock(0, nullptr);
    Budget budget;
    budget.SetDeadline(TimePoint(std::chrono::seconds(2)), &clock);
    const BudgetScope scope(&budget);
    const auto made = MakeTestKernel(op, none, inputs);
    ASSERT_TRUE(made.ok()) << made.status();
    std::vector<TensorView> views;
    for (const Tensor& input : inputs) views.push_back(input.view());
    ThreadPool pool(1);
    Outputs outputs;
    const absl::Status status = (*made)->kernel->Run(
        {.inputs = views, .outputs = {}, .pool = &pool, .allocator = &outputs});
    EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
    EXPECT_LE(clock.looks(), 4);
  }
}

TEST(RunWatch, WithoutABudgetNothingStops) {
  kernels::RunWatch watch;
  EXPECT_FALSE(watch.Stopped());
  EXPECT_TRUE(watch.status().ok());
}

}  // namespace
}  // namespace floe
