// Graphs with islands on a device, over the fake CUDA runtime.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/status.h"
#include "kernels/cuda/device/device.h"
#include "kernels/cuda/device/errors.h"
#include "runtime/exec_context.h"
#include "runtime/test_graph.h"
#include "tests/cuda/fake_cudart.h"

namespace floe {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

// Two products with constant weights, a residual, and an output that an island only passes on.
TestGraph Net() {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, kRows4);
  std::vector<float> w(16);
  for (int i = 0; i < 16; ++i) w[i] = static_cast<float>(i % 7) * 0.25f - 0.5f;
  const ValueRef weights = t.Floats("w", {4, 4}, w);
  const ValueRef a = t.Op("Tanh", "a", {t.Op("MatMul", "p", {x, weights})});
  const ValueRef b = t.Op("MatMul", "b", {a, weights});
  t.Output(t.Op("Softmax", "soft", {t.Op("Add", "sum", {b, x})}));
  t.Output(t.Op("Reshape", "flat", {a, t.Ints("to", {-1, 2})}));
  return t;
}

absl::StatusOr<std::vector<Tensor>> Run(const CompiledSignature& compiled, int64_t rows,
                                        ExecContext* context) {
  Tensor x = Tensor::Allocate(DType::kFloat32, Shape({rows, 4}));
  for (int64_t i = 0; i < rows * 4; ++i)
    static_cast<float*>(x.mutable_data())[i] = static_cast<float>(i % 11) / 8 - 0.5f;
  FLOE_ASSIGN_OR_RETURN(const auto plan, compiled.Bind({x.shape()}));
  FLOE_RETURN_IF_ERROR(context->Prepare(plan, rows));
  context->BindInput(0, x.data());
  FLOE_RETURN_IF_ERROR(context->Run());
  std::vector<Tensor> outputs;
  for (size_t k = 0; k < plan->output_types().size(); ++k)
    outputs.push_back(Tensor::Copy(context->Output(static_cast<int>(k))));
  return outputs;
}

using Answers = std::vector<std::vector<Tensor>>;

// Of one row, three, and one again, from opening the device. `on`: unset for the emulator.
absl::StatusOr<Answers> Serve(bool on_device, OnDeviceError on_error = OnDeviceError::kFail) {
  Placement islands{.device = DeviceKind::kCuda, .all = true, .on_error = on_error};
  if (on_device) {
    FLOE_ASSIGN_OR_RETURN(const auto library,
                          cuda::Library::OpenFile(FLOE_FAKE_CUDA_FOLDER "/libfloe_cuda.so"));
    FLOE_ASSIGN_OR_RETURN(islands.on, cuda::Device::Open(library, 0, 0));
  }
  const TestGraph t = Net();
  FLOE_ASSIGN_OR_RETURN(const auto compiled,
                        CompiledSignature::Compile(t.graph, t.signature, {.islands = islands}));
  ExecContext context;
  Answers answers;
  for (const int64_t rows : {1, 3, 1}) {
    FLOE_ASSIGN_OR_RETURN(answers.emplace_back(), Run(*compiled, rows, &context));
  }
  return answers;
}

void ExpectSame(const Answers& got, const Answers& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].size(), want[i].size());
    for (size_t k = 0; k < got[i].size(); ++k) {
      ASSERT_EQ(got[i][k].shape(), want[i][k].shape());
      EXPECT_EQ(std::memcmp(got[i][k].data(), want[i][k].data(), got[i][k].bytes()), 0)
          << "run " << i << ", output " << k;
    }
  }
}

class OnFakeIslands : public testing::Test {
 protected:
  void SetUp() override { Reset(); }
  void TearDown() override {
    EXPECT_EQ(fake_cuda_alive(), 0);
    EXPECT_EQ(fake_cuda_used(), 0u);
    EXPECT_STREQ(fake_cuda_complaint(), "");
  }
  static void Reset(uint64_t bytes = uint64_t{1} << 30) {
    const FakeCudaOptions options = {bytes, 1, 9, 0};
    fake_cuda_reset(&options);
  }
};

TEST_F(OnFakeIslands, HaveTheEmulatorsBits) {
  const auto want = Serve(false);
  ASSERT_TRUE(want.ok()) << want.status();
  EXPECT_EQ(fake_cuda_kernels_run(), 0);
  const auto got = Serve(true);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_GE(fake_cuda_kernels_run(), 9);
  ExpectSame(*got, *want);
}

// Each call of the runtime in turn, from opening to the last answer.
TEST_F(OnFakeIslands, AFailedCallIsAnErrorOrTheRightAnswer) {
  const auto want = Serve(true);
  ASSERT_TRUE(want.ok()) << want.status();
  const int64_t calls = fake_cuda_calls();
  int errors = 0;
  for (const int error : {cuda::kCudaOutOfMemory, cuda::kCudaIllegalAddress}) {
    for (int64_t i = 0; i < calls; ++i) {
      Reset();
      fake_cuda_fail_after(i, error);
      const auto got = Serve(true);
      if (got.ok()) {
        ExpectSame(*got, *want);
      } else {
        ++errors;
        EXPECT_THAT(std::string(got.status().message()),
                    AnyOf(HasSubstr("cudaError"), HasSubstr("memory")));
      }
      EXPECT_EQ(fake_cuda_alive(), 0) << "call " << i;
    }
  }
  EXPECT_GT(errors, calls);
  std::cout << calls << " calls failed in turn in two ways: " << errors << " errors\n";
}

// What the host computes of an island has other bits than the device's.
void ExpectNear(const Answers& got, const Answers& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].size(), want[i].size());
    for (size_t k = 0; k < got[i].size(); ++k) {
      ASSERT_EQ(got[i][k].shape(), want[i][k].shape());
      for (int64_t e = 0; e < got[i][k].elements(); ++e)
        EXPECT_NEAR(got[i][k].as<float>()[e], want[i][k].as<float>()[e], 1e-6);
    }
  }
}

// Compiles for a device, and lets call number `fail` after that fail; answers and counters.
struct Failing {
  absl::StatusOr<Answers> answers;
  int64_t calls = 0, runs = 0, failed = 0, by_cpu = 0;
};
Failing FailDuringRuns(OnDeviceError on_error, int64_t fail, int error) {
  auto library = cuda::Library::OpenFile(FLOE_FAKE_CUDA_FOLDER "/libfloe_cuda.so");
  auto device = cuda::Device::Open(*library, 0, 0);
  const Placement islands{
      .device = DeviceKind::kCuda, .all = true, .on = *device, .on_error = on_error};
  const TestGraph t = Net();
  const auto compiled = CompiledSignature::Compile(t.graph, t.signature, {.islands = islands});
  EXPECT_TRUE(compiled.ok()) << compiled.status();
  const int64_t before = fake_cuda_calls();
  if (error != 0) fake_cuda_fail_after(fail, error);
  Failing result{Answers()};
  ExecContext context;
  for (const int64_t rows : {1, 3, 1}) {
    auto answer = Run(**compiled, rows, &context);
    if (!answer.ok()) {
      result.answers = answer.status();
      break;
    }
    result.answers->push_back(*std::move(answer));
  }
  result.calls = fake_cuda_calls() - before;
  result.runs = (*device)->runs();
  result.failed = (*device)->failed_runs();
  result.by_cpu = (*device)->answered_by_cpu();
  return result;
}

TEST_F(OnFakeIslands, TheHostAnswersForADeviceThatFails) {
  const Failing whole = FailDuringRuns(OnDeviceError::kCpu, 0, 0);
  ASSERT_TRUE(whole.answers.ok()) << whole.answers.status();
  EXPECT_GE(whole.runs, 3);
  EXPECT_EQ(whole.failed, 0);
  int64_t by_cpu = 0, errors = 0;
  for (const int error : {cuda::kCudaOutOfMemory, cuda::kCudaIllegalAddress}) {
    for (int64_t i = 0; i < whole.calls; ++i) {
      Reset();
      const Failing got = FailDuringRuns(OnDeviceError::kCpu, i, error);
      ASSERT_TRUE(got.answers.ok()) << "call " << i << ": " << got.answers.status();
      ExpectNear(*got.answers, *whole.answers);
      EXPECT_EQ(got.failed, got.by_cpu);
      EXPECT_EQ(got.runs + got.failed, whole.runs);
      by_cpu += got.by_cpu;
      Reset();
      const Failing refused = FailDuringRuns(OnDeviceError::kFail, i, error);
      EXPECT_EQ(refused.by_cpu, 0);
      if (refused.answers.ok()) {
        ExpectSame(*refused.answers, *whole.answers);
      } else {
        ++errors;
        EXPECT_THAT(std::string(refused.answers.status().message()), HasSubstr("cuda:0"));
        EXPECT_THAT(std::string(refused.answers.status().message()), HasSubstr("island 1"));
      }
    }
  }
  EXPECT_GT(by_cpu, whole.calls);
  EXPECT_GT(errors, whole.calls);
}

TEST_F(OnFakeIslands, EqualWeightsAreOnADeviceOnce) {
  const auto library = cuda::Library::OpenFile(FLOE_FAKE_CUDA_FOLDER "/libfloe_cuda.so");
  const auto device = cuda::Device::Open(*library, 0, 0);
  CompileOptions options{.islands =
                             Placement{.device = DeviceKind::kCuda, .all = true, .on = *device}};
  options.weights = std::make_shared<WeightStore>();
  const TestGraph t = Net(), other = Net();
  auto first = CompiledSignature::Compile(t.graph, t.signature, options);
  ASSERT_TRUE(first.ok()) << first.status();
  const int64_t used = (*device)->budget().in_use();
  EXPECT_GT(used, 0);
  auto second = CompiledSignature::Compile(other.graph, other.signature, options);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ((*device)->budget().in_use(), used);
  first->reset();
  EXPECT_EQ((*device)->budget().in_use(), used);
  second->reset();
  EXPECT_EQ((*device)->budget().in_use(), 0);
}

TEST_F(OnFakeIslands, ADeviceThatIsTooSmallIsNamed) {
  Reset(64);
  const auto got = Serve(true);
  ASSERT_FALSE(got.ok());
  EXPECT_THAT(std::string(got.status().message()), HasSubstr("cuda:0"));
}

}  // namespace
}  // namespace floe
