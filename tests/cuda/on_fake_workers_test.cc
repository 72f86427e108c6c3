// What workers prepare on a device before they serve, and what their runs make of it, over the fake
// CUDA runtime.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "base/status.h"
#include "kernels/cuda/device/device.h"
#include "kernels/cuda/device/errors.h"
#include "runtime/device_cost.h"
#include "runtime/estimate.h"
#include "runtime/exec_context.h"
#include "runtime/test_graph.h"
#include "runtime/test_loops.h"
#include "tests/cuda/fake_cudart.h"

namespace floe {
namespace {

using testing::HasSubstr;
using Outputs = std::vector<Tensor>;

ValueRef Product4(TestGraph* t, const std::string& name, ValueRef x) {
  std::vector<float> w(16);
  for (int i = 0; i < 16; ++i) w[i] = static_cast<float>(i % 7) * 0.25f - 0.5f;
  return t->Op("MatMul", name, {x, t->Floats(name + "/w", {4, 4}, w)});
}

// Rows are independent in it.
TestGraph RowNet() {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, kRows4);
  const ValueRef a = t.Op("Tanh", "a", {Product4(&t, "p", x)});
  t.Output(t.Op("Softmax", "soft", {t.Op("Add", "sum", {Product4(&t, "q", a), x})}));
  t.Output(a);
  return t;
}

// An island, a step of the host, and another island, which read the same input.
TestGraph TwoIslandsNet() {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, kRows4);
  const ValueRef a = t.Op("Tanh", "a", {Product4(&t, "p", x)});
  const ValueRef host = t.Op("Cumsum", "host", {a, t.Int("axis", 1)});
  t.Output(t.Op("Add", "sum", {Product4(&t, "q", host), x}));
  t.Output(a);
  return t;
}

// The sum of all rows, which each gets.
TestGraph MixedNet() {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, kRows4);
  const ValueRef sum =
      t.Op("Sum", "all", {Product4(&t, "p", x), t.Ints("axis", {0})}, {{"keep_dims", true}});
  t.Output(t.Op("Add", "sum", {x, sum}));
  return t;
}

// One island before a choice, one in each branch, one in a loop's body behind it.
TestGraph ControlNet() {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, kRows4);
  const ValueRef a = t.Op("Tanh", "a", {Product4(&t, "p", x)});
  const ValueRef yes = t.Input("yes", DType::kBool, SymShape());
  TestGraph minus, twice;
  minus.Output(minus.Op(
      "Neg", "n",
      {Product4(&minus, "m", minus.Input("v", DType::kFloat32, SymShape::UnknownRank()))}));
  const ValueRef v = twice.Input("v", DType::kFloat32, SymShape::UnknownRank());
  twice.Output(twice.Op("Add", "d", {Product4(&twice, "m", v), v}));
  const ValueRef choice = t.Op("If", "choice", {yes, a});
  t.graph.mutable_node(choice.node).subgraphs = {std::make_shared<const Graph>(minus.graph),
                                                 std::make_shared<const Graph>(twice.graph)};
  const int loop =
      AddLoop(&t, 3, {choice}, {DType::kFloat32}, [](TestGraph* b, const auto& values) {
        return std::vector<ValueRef>{b->Op("Tanh", "t", {Product4(b, "r", values[1])})};
      });
  t.Output({loop, 1});
  return t;
}

Tensor Rows4(int64_t rows, float scale) {
  Tensor x = Tensor::Allocate(DType::kFloat32, Shape({rows, 4}));
  for (int64_t i = 0; i < rows * 4; ++i)
    static_cast<float*>(x.mutable_data())[i] = (static_cast<float>(i % 11) / 8 - 0.5f) * scale;
  return x;
}

// The row-wise inputs are copied to where the context has them, or bound.
absl::StatusOr<Outputs> RunOnce(const CompiledSignature& compiled,
                                const std::vector<Tensor>& inputs, bool bind,
                                ExecContext* context) {
  std::vector<Shape> shapes;
  shapes.reserve(inputs.size());
  for (const Tensor& input : inputs) shapes.push_back(input.shape());
  FLOE_ASSIGN_OR_RETURN(const auto plan, compiled.Bind(shapes));
  FLOE_RETURN_IF_ERROR(context->Prepare(plan, shapes[0].dim(0)));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int input = static_cast<int>(i);
    if (bind)
      context->BindInput(input, inputs[i].data());
    else
      std::memcpy(context->Input(input).data, inputs[i].data(), inputs[i].bytes());
  }
  FLOE_RETURN_IF_ERROR(context->Run());
  Outputs outputs;
  outputs.reserve(plan->output_types().size());
  for (size_t k = 0; k < plan->output_types().size(); ++k)
    outputs.push_back(Tensor::Copy(context->Output(static_cast<int>(k))));
  return outputs;
}

void ExpectEqual(const absl::StatusOr<Outputs>& got, const absl::StatusOr<Outputs>& want) {
  ASSERT_TRUE(got.ok()) << got.status();
  ASSERT_TRUE(want.ok()) << want.status();
  ASSERT_EQ(got->size(), want->size());
  for (size_t k = 0; k < got->size(); ++k) {
    ASSERT_EQ((*got)[k].shape(), (*want)[k].shape());
    EXPECT_EQ(std::memcmp((*got)[k].data(), (*want)[k].data(), (*got)[k].bytes()), 0)
        << "output " << k;
  }
}

class OnFakeWorkers : public testing::Test {
 protected:
  void SetUp() override { Reset(uint64_t{1} << 30, 9, 0); }
  void TearDown() override {
    device_.reset();
    EXPECT_EQ(fake_cuda_alive(), 0);
    EXPECT_EQ(fake_cuda_used(), 0u);
    EXPECT_STREQ(fake_cuda_complaint(), "");
  }
  void Reset(uint64_t bytes, int major, int minor) {
    device_.reset();
    const FakeCudaOptions options = {bytes, 1, major, minor};
    fake_cuda_reset(&options);
    const auto library = cuda::Library::OpenFile(FLOE_FAKE_CUDA_FOLDER "/libfloe_cuda.so");
    auto device = cuda::Device::Open(*library, 0, 0);
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
  }

  std::shared_ptr<const CompiledSignature> OnDevice(const TestGraph& t,
                                                    CompileOptions options = {}) {
    options.islands = Placement{.device = DeviceKind::kCuda, .all = true, .on = device_};
    return t.Compile(options);
  }
  // By the emulator, of exactly the rows that there are.
  static absl::StatusOr<Outputs> Emulated(const TestGraph& t, const std::vector<Tensor>& inputs) {
    ExecContext context;
    const auto compiled =
        t.Compile({.islands = Placement{.device = DeviceKind::kCuda, .all = true}});
    return RunOnce(*compiled, inputs, /*bind=*/true, &context);
  }
  // Of plans for one row of four numbers, and scalars.
  static absl::Status PrepareFor(const CompiledSignature& compiled,
                                 const std::vector<int64_t>& rows, ExecContext* context) {
    std::vector<Shape> shapes;
    for (const SignatureTensor& input : compiled.signature().inputs)
      shapes.push_back(input.type.shape.rank() == 0 ? Shape() : Shape({1, 4}));
    FLOE_ASSIGN_OR_RETURN(const auto plan, compiled.Bind(shapes));
    return context->PrepareIslands(plan, rows);
  }

  std::shared_ptr<cuda::Device> device_;
};

TEST_F(OnFakeWorkers, RunsOfAnyRowsMakeNothingThatWasNotPrepared) {
  const TestGraph t = RowNet();
  const auto compiled = OnDevice(t);
  ExecContext context;
  ASSERT_TRUE(PrepareFor(*compiled, {1, 2, 4, 8}, &context).ok());
  const int64_t made = fake_cuda_made();
  const uint64_t used = fake_cuda_used();
  for (const bool bind : {true, false}) {
    for (const int64_t rows : {8, 1, 7, 2, 3, 6, 4, 5}) {
      const std::vector<Tensor> x = {Rows4(rows, static_cast<float>(rows))};
      ExpectEqual(RunOnce(*compiled, x, bind, &context), Emulated(t, x));
    }
  }
  EXPECT_EQ(fake_cuda_made(), made);
  EXPECT_EQ(fake_cuda_used(), used);
}

TEST_F(OnFakeWorkers, NothingIsLostWithOtherPlansAndIdleTime) {
  const TestGraph t = RowNet(), other = ControlNet();
  const auto compiled = OnDevice(t), another = OnDevice(other);
  ExecContext context;
  ASSERT_TRUE(PrepareFor(*compiled, {1, 4}, &context).ok());
  ASSERT_TRUE(PrepareFor(*another, {1, 4}, &context).ok());
  const int64_t made = fake_cuda_made();
  const std::vector<Tensor> x = {Rows4(3, 1)}, both = {x[0], Tensor::Scalar(DType::kBool, true)};
  for (int i = 0; i < 2; ++i) {
    ExpectEqual(RunOnce(*compiled, x, true, &context), Emulated(t, x));
    ExpectEqual(RunOnce(*another, both, true, &context), Emulated(other, both));
    context.Trim();
  }
  EXPECT_EQ(fake_cuda_made(), made);
}

TEST_F(OnFakeWorkers, AllSizesShareTheMemoryOfTheLargest) {
  const auto compiled = OnDevice(RowNet());
  const auto used_by = [&](const std::vector<int64_t>& rows) {
    ExecContext context;
    EXPECT_TRUE(PrepareFor(*compiled, rows, &context).ok());
    EXPECT_EQ(device_->budget().in_use(), static_cast<int64_t>(fake_cuda_used()));
    return fake_cuda_used();
  };
  const uint64_t largest = used_by({64});
  EXPECT_EQ(used_by({1, 2, 4, 8, 16, 32, 64}), largest);
  EXPECT_LT(used_by({1, 2, 4}), largest);
}

// What was prepared for more rows goes when fewer are prepared, as warm-up does where memory is
// short.
TEST_F(OnFakeWorkers, WhatHasNoRoomIsPreparedForFewerRows) {
  uint64_t weights = 0, room = 0;
  {
    const auto compiled = OnDevice(RowNet());
    weights = fake_cuda_used();
    ExecContext context;
    ASSERT_TRUE(PrepareFor(*compiled, {16}, &context).ok());
    room = fake_cuda_used() - weights;
  }
  Reset(weights + room + room / 2, 9, 0);
  const TestGraph t = RowNet();
  const auto compiled = OnDevice(t);
  ExecContext context;
  ASSERT_TRUE(PrepareFor(*compiled, {1, 8, 16}, &context).ok());
  const absl::Status refused = PrepareFor(*compiled, {1, 8, 64}, &context);
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("cuda:0"));
  EXPECT_EQ(fake_cuda_used(), weights);
  ASSERT_TRUE(PrepareFor(*compiled, {1, 8}, &context).ok());
  const int64_t made = fake_cuda_made();
  const std::vector<Tensor> x = {Rows4(5, 1)};
  ExpectEqual(RunOnce(*compiled, x, true, &context), Emulated(t, x));
  EXPECT_EQ(fake_cuda_made(), made);
}

TEST_F(OnFakeWorkers, WhereRowsMixEachNumberHasAGraphOfItsOwn) {
  const TestGraph t = MixedNet();
  const auto compiled = OnDevice(t);
  ExecContext context;
  ASSERT_TRUE(PrepareFor(*compiled, {1, 4}, &context).ok());
  int64_t made = fake_cuda_made();
  for (const int64_t rows : {1, 4, 3, 2}) {
    const std::vector<Tensor> x = {Rows4(rows, 1)};
    ExpectEqual(RunOnce(*compiled, x, true, &context), Emulated(t, x));
  }
  EXPECT_EQ(fake_cuda_made(), made) << "up to the largest number of rows, few have been prepared";
  made = fake_cuda_made();
  for (int64_t rows = 39; rows >= 5; --rows)
    ASSERT_TRUE(RunOnce(*compiled, {Rows4(rows, 1)}, true, &context).ok());
  EXPECT_GE(fake_cuda_made(), made + 35);
  EXPECT_LT(fake_cuda_alive(), 30) << "all of them were kept";
  made = fake_cuda_made();
  for (const int64_t rows : {5, 20, 39})  // of the last 16 the first and the last, and an older one
    ASSERT_TRUE(RunOnce(*compiled, {Rows4(rows, 1)}, true, &context).ok());
  EXPECT_EQ(fake_cuda_made(), made + 1);  // of 39
}

TEST_F(OnFakeWorkers, IslandsInBranchesAndLoopsArePreparedBeforeTheyAreTaken) {
  const TestGraph t = ControlNet();
  const auto compiled = OnDevice(t);
  ExecContext context;
  ASSERT_TRUE(PrepareFor(*compiled, {1, 2, 4}, &context).ok());
  const int64_t made = fake_cuda_made();
  for (const bool yes : {true, false}) {
    for (const int64_t rows : {1, 3, 4}) {
      const std::vector<Tensor> x = {Rows4(rows, 1), Tensor::Scalar(DType::kBool, yes)};
      const int64_t kernels = fake_cuda_kernels_run();
      ExpectEqual(RunOnce(*compiled, x, true, &context), Emulated(t, x));
      EXPECT_GE(fake_cuda_kernels_run() - kernels, 5) << "a, a branch, and three rounds";
    }
  }
  EXPECT_EQ(fake_cuda_made(), made);
}

TEST_F(OnFakeWorkers, AShapeIsReadWithoutACopy) {
  TestGraph t;
  const ValueRef like = t.Input("like", DType::kFloat32, kRows4);
  const ValueRef x = t.Input("x", DType::kFloat32, {1, 4});
  const ValueRef twos =
      t.Op("Fill", "twos", {t.Op("Shape", "shape", {like}), t.Floats("two", {}, {2})});
  t.Output(t.Op("Mul", "y", {x, twos}));
  TestGraph only;  // nothing else is read of it
  const ValueRef ones = only.Op("Fill", "ones",
                                {only.Op("Shape", "s", {only.Input("x", DType::kFloat32, kRows4)}),
                                 only.Floats("one", {}, {1})});
  only.Output(only.Op("Exp", "y", {ones}));
  for (const int64_t rows : {1, 3}) {
    ExecContext context, other;
    const std::vector<Tensor> both = {Rows4(rows, 1), Rows4(1, 2)};
    uint64_t copied = fake_cuda_copied();
    const int64_t kernels = fake_cuda_kernels_run();
    ExpectEqual(RunOnce(*OnDevice(t), both, true, &context), Emulated(t, both));
    EXPECT_EQ(fake_cuda_copied() - copied, both[1].bytes());
    copied = fake_cuda_copied();
    ExpectEqual(RunOnce(*OnDevice(only), {both[0]}, true, &other), Emulated(only, {both[0]}));
    EXPECT_EQ(fake_cuda_copied(), copied);
    EXPECT_GE(fake_cuda_kernels_run() - kernels, 4);
  }
}

// The number of rows is an operand: rows are not separate, and the device has its value.
TEST_F(OnFakeWorkers, ValuesThatFollowFromTheRowsAreOnTheDevice) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, kRows4);
  const ValueRef rows =
      t.Op("StridedSlice", "rows",
           {t.Op("Shape", "shape", {x}), t.Ints("b", {0}), t.Ints("e", {1}), t.Ints("s", {1})},
           {{"shrink_axis_mask", int64_t{1}}});
  const ValueRef count = t.Op("Cast", "count", {rows}, {{"DstT", DType::kFloat32}});
  t.Output(t.Op("Mul", "y", {Product4(&t, "p", x), count}));
  const auto compiled = OnDevice(t);
  ExecContext context;
  ASSERT_TRUE(PrepareFor(*compiled, {1, 4}, &context).ok());
  for (const int64_t n : {4, 1, 3, 4}) {
    const std::vector<Tensor> in = {Rows4(n, 1)};
    ExpectEqual(RunOnce(*compiled, in, true, &context), Emulated(t, in));
  }
}

TEST_F(OnFakeWorkers, RowsAreGatheredWhereTheDeviceCopiesThemFrom) {
  const TestGraph t = RowNet();
  const auto compiled = OnDevice(t), control = OnDevice(ControlNet());
  ExecContext context, other;
  ASSERT_TRUE(PrepareFor(*compiled, {1, 4}, &context).ok());
  ASSERT_TRUE(PrepareFor(*control, {1, 4}, &other).ok());
  const auto is_pinned = [](const CompiledSignature& signature, int64_t rows, ExecContext* at) {
    std::vector<Shape> shapes = {Shape({rows, 4})};
    shapes.resize(signature.signature().inputs.size());
    EXPECT_TRUE(at->Prepare(*signature.Bind(shapes), rows).ok());
    return fake_cuda_is_pinned(at->Input(0).data) != 0;
  };
  EXPECT_TRUE(is_pinned(*compiled, 3, &context));
  EXPECT_TRUE(is_pinned(*compiled, 3, &context)) << "prepared again";
  EXPECT_FALSE(is_pinned(*compiled, 5, &context)) << "nothing is prepared for so many";
  EXPECT_TRUE(is_pinned(*control, 3, &other)) << "other islands use other memory";
  EXPECT_FALSE(is_pinned(*control, 5, &other)) << "nothing is prepared for so many";
  for (const int64_t rows : {3, 5, 4}) {
    const std::vector<Tensor> x = {Rows4(rows, 1)};
    ExpectEqual(RunOnce(*compiled, x, /*bind=*/false, &context), Emulated(t, x));
    ExpectEqual(RunOnce(*compiled, x, /*bind=*/true, &context), Emulated(t, x));
  }
  // Larger memory takes the place of what a plan was prepared with.
  ASSERT_TRUE(context.Prepare(*compiled->Bind({Shape({3, 4})}), 3).ok());
  (void)context.Input(0);
  ASSERT_TRUE(PrepareFor(*compiled, {1, 4, 8}, &context).ok());
  EXPECT_EQ(context.Run().code(), absl::StatusCode::kInternal);
}

// What is staged for the second island is not what the first one writes.
TEST_F(OnFakeWorkers, InputsOfSeveralIslandsAreStagedBeforeTheRun) {
  const TestGraph t = TwoIslandsNet(), control = ControlNet();
  const auto compiled = OnDevice(t), branches = OnDevice(control);
  ExecContext context;
  ASSERT_TRUE(PrepareFor(*compiled, {1, 4}, &context).ok());
  ASSERT_TRUE(PrepareFor(*branches, {1, 2, 4}, &context).ok());
  const int64_t made = fake_cuda_made();
  for (const int64_t rows : {3, 4, 1, 2}) {
    const std::vector<Tensor> x = {Rows4(rows, 1)};
    const int64_t runs = device_->runs();
    ExpectEqual(RunOnce(*compiled, x, /*bind=*/false, &context), Emulated(t, x));
    EXPECT_EQ(device_->runs() - runs, 2) << "of islands";
    EXPECT_NE(fake_cuda_is_pinned(context.Input(0).data), 0);
    const std::vector<Tensor> both = {x[0], Tensor::Scalar(DType::kBool, rows > 2)};
    ExpectEqual(RunOnce(*branches, both, /*bind=*/false, &context), Emulated(control, both));
  }
  EXPECT_EQ(fake_cuda_made(), made);
}

// Of a model that leaves another dim open, as requests that were recorded have it.
TEST_F(OnFakeWorkers, OtherShapesArePreparedToo) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, {Dim::Unknown(), Dim::Unknown()});
  t.Output(t.Op("Softmax", "y", {t.Op("Tanh", "a", {x})}));
  const auto compiled = OnDevice(t);
  ExecContext context;
  const int64_t before = fake_cuda_made();
  for (int64_t inner = 23; inner >= 4; --inner)
    ASSERT_TRUE(context.PrepareIslands(*compiled->Bind({Shape({1, inner})}), {1, 2, 4}).ok());
  const int64_t made = fake_cuda_made();
  EXPECT_LT(made - before, 200) << "of 60 graphs, how often are they made again?";
  ASSERT_TRUE(context.PrepareIslands(*compiled->Bind({Shape({1, 6})}), {1, 2, 4}).ok());
  for (const int64_t inner : {4, 6, 23, 4}) {
    for (const int64_t rows : {1, 3}) {
      Tensor in = Tensor::Allocate(DType::kFloat32, Shape({rows, inner}));
      for (int64_t i = 0; i < in.elements(); ++i)
        static_cast<float*>(in.mutable_data())[i] = static_cast<float>(i % 7) / 3;
      ExpectEqual(RunOnce(*compiled, {in}, /*bind=*/false, &context), Emulated(t, {in}));
    }
  }
  EXPECT_EQ(fake_cuda_made(), made);
}

// As a signature of a model whose batches are smaller than another's.
TEST_F(OnFakeWorkers, EachPlanHasItsOwnNumbersOfRows) {
  const TestGraph t = RowNet(), other = TwoIslandsNet();
  const auto compiled = OnDevice(t), another = OnDevice(other);
  ExecContext context;
  ASSERT_TRUE(PrepareFor(*compiled, {1, 2, 3}, &context).ok());
  ASSERT_TRUE(PrepareFor(*another, {1, 2, 4}, &context).ok());
  const int64_t made = fake_cuda_made();
  const std::vector<Tensor> x = {Rows4(3, 1)};
  ExpectEqual(RunOnce(*another, x, /*bind=*/false, &context), Emulated(other, x));
  EXPECT_EQ(fake_cuda_made(), made);
}

// What has no room does not cost another plan what was prepared for it.
TEST_F(OnFakeWorkers, AnotherPlanThatHasNoRoomLeavesWhatWasPrepared) {
  const TestGraph t = RowNet();
  Reset(uint64_t{1} << 16, 9, 0);
  const auto compiled = OnDevice(t), another = OnDevice(TwoIslandsNet());
  ExecContext context;
  ASSERT_TRUE(PrepareFor(*compiled, {1, 4}, &context).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(PrepareFor(*another, {1, 1 << 12}, &context)));
  const int64_t made = fake_cuda_made();
  const std::vector<Tensor> x = {Rows4(3, 1)};
  ExpectEqual(RunOnce(*compiled, x, /*bind=*/false, &context), Emulated(t, x));
  EXPECT_EQ(fake_cuda_made(), made);
}

// Three workers, of whom two are on the device together: each stream has the copies and kernels of
// one before anybody's run has ended.
TEST_F(OnFakeWorkers, TwoRunsAreOnTheDeviceTogether) {
  const TestGraph t = RowNet();
  const auto compiled = OnDevice(t);
  cuda::DeviceGate::User user(1);
  constexpr int kWorkers = 3;
  std::vector<std::unique_ptr<ExecContext>> contexts;
  contexts.reserve(kWorkers);
  for (int i = 0; i < kWorkers; ++i) {
    contexts.push_back(std::make_unique<ExecContext>());
    ASSERT_TRUE(PrepareFor(*compiled, {4}, contexts.back().get()).ok());
  }
  fake_cuda_hold(1);
  std::vector<absl::StatusOr<Outputs>> got(kWorkers, absl::UnknownError(""));
  std::vector<std::thread> threads;
  threads.reserve(kWorkers);
  for (int i = 0; i < kWorkers; ++i)
    threads.emplace_back([&, i] {
      const cuda::ScopedDeviceUser scope(&user);
      got[i] = RunOnce(*compiled, {Rows4(4, static_cast<float>(i + 1))}, true, contexts[i].get());
    });
  fake_cuda_await_busy(2);
  while (device_->gate().waiting() == 0) std::this_thread::yield();
  EXPECT_EQ(fake_cuda_busy(), 2);
  EXPECT_EQ(fake_cuda_kernels_run(), 0);
  fake_cuda_hold(0);
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < kWorkers; ++i)
    ExpectEqual(got[i], Emulated(t, {Rows4(4, static_cast<float>(i + 1))}));
}

// From the upload of weights to the answer. With the CPU behind it, a lost device is no error of a
// load.
TEST_F(OnFakeWorkers, AFailedCallOfALoadIsAnErrorOrTheRightAnswer) {
  const TestGraph t = RowNet();
  const std::vector<Tensor> x = {Rows4(3, 1)};
  const auto want = Emulated(t, x);
  ASSERT_TRUE(want.ok()) << want.status();
  const auto serve = [&](OnDeviceError on_error) -> absl::StatusOr<Outputs> {
    const Placement islands{
        .device = DeviceKind::kCuda, .all = true, .on = device_, .on_error = on_error};
    FLOE_ASSIGN_OR_RETURN(const auto compiled,
                          CompiledSignature::Compile(t.graph, t.signature, {.islands = islands}));
    ExecContext context;
    FLOE_RETURN_IF_ERROR(PrepareFor(*compiled, {1, 4}, &context));
    return RunOnce(*compiled, x, /*bind=*/false, &context);
  };
  const int64_t before = fake_cuda_calls();
  ExpectEqual(serve(OnDeviceError::kFail), want);
  const int64_t calls = fake_cuda_calls() - before;
  int errors = 0;
  for (int64_t i = 0; i < calls; ++i) {
    for (const int error : {cuda::kCudaOutOfMemory, cuda::kCudaIllegalAddress}) {
      Reset(uint64_t{1} << 30, 9, 0);
      fake_cuda_fail_after(i, error);
      if (const auto got = serve(OnDeviceError::kFail); got.ok()) {
        ExpectEqual(got, want);
      } else {
        ++errors;
        EXPECT_THAT(std::string(got.status().message()),
                    testing::AnyOf(HasSubstr("cuda:0"), HasSubstr("memory")));
      }
    }
    Reset(uint64_t{1} << 30, 9, 0);
    fake_cuda_fail_after(i, cuda::kCudaIllegalAddress);
    const auto by_cpu = serve(OnDeviceError::kCpu);
    ASSERT_TRUE(by_cpu.ok()) << "call " << i << ": " << by_cpu.status();
    for (int64_t e = 0; e < (*want)[0].elements(); ++e)
      EXPECT_NEAR((*by_cpu)[0].as<float>()[e], (*want)[0].as<float>()[e], 1e-6);
  }
  EXPECT_GT(errors, calls);
}

TEST_F(OnFakeWorkers, RunsAreEstimatedByTheDevicesWork) {
  const auto compiled = OnDevice(RowNet());
  const auto plan = *compiled->Bind({Shape({1, 4})});
  EXPECT_TRUE(WorkIsKnown(*plan));
  const double one = RunMicros(*plan, 1), many = RunMicros(*plan, 1'000'000);
  EXPECT_EQ(RunMicros(*plan, 1, 8), one) << "threads of the host do not help a device";
  const auto mixed = *OnDevice(TwoIslandsNet())->Bind({Shape({1, 4})});
  const double alone = RunMicros(*mixed, 64), shared = RunMicros(*mixed, 64, 8);
  EXPECT_LT(shared, alone);
  EXPECT_GT(shared, 2 * kDeviceRunMicros + 2 * kDeviceLaunchMicros);
  EXPECT_GT(one, kDeviceRunMicros + 2 * kDeviceLaunchMicros);
  EXPECT_LT(one, kDeviceRunMicros + 10 * kDeviceLaunchMicros);
  const double crossing = 3e6 * 4 * sizeof(float) / kCrossingBytes;  // x, and two outputs
  EXPECT_GT(many, one + crossing);
  EXPECT_LT(many, one + 1.5 * crossing);
}

TEST_F(OnFakeWorkers, OlderDevicesHaveNoTensorCores) {
  Reset(uint64_t{1} << 30, 7, 5);
  EXPECT_TRUE(device_->CheckCanRun(cuda::KernelId::gemm_64x64).ok());
  const absl::Status refused = device_->CheckCanRun(cuda::KernelId::gemm_tf32);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("set precision: float32"));
  CompileOptions options;
  options.kernels.precision = Precision::kTf32;
  const auto compiled = OnDevice(RowNet(), options);
  ExecContext context;
  EXPECT_EQ(
      PrepareFor(*compiled, {1, 2}, &context),
      absl::FailedPreconditionError(absl::StrCat("island 1: ", std::string(refused.message()))));
  Reset(uint64_t{1} << 30, 8, 0);
  EXPECT_TRUE(device_->CheckCanRun(cuda::KernelId::conv_bf16).ok());
}

}  // namespace
}  // namespace floe
