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
absl::StatusOr<Answers> Serve(bool on_device) {
  Placement islands{.device = DeviceKind::kCuda, .all = true};
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

TEST_F(OnFakeIslands, ADeviceThatIsTooSmallIsNamed) {
  Reset(64);
  const auto got = Serve(true);
  ASSERT_FALSE(got.ok());
  EXPECT_THAT(std::string(got.status().message()), HasSubstr("cuda:0"));
}

}  // namespace
}  // namespace floe
