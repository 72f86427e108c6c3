// Kernels of nodes, on the device and on the emulator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/cuda/fake_cudart.h"
#include "tests/cuda/kernel_on_device.h"

namespace floe::cuda {
namespace {

using ::testing::HasSubstr;

// 2 everywhere, and then 5 in the last place.
void EmitTwoAndFive(const DeviceAddresses& addresses, std::vector<Launch>* launches) {
  auto* const out = addresses.out(0).as<float>();
  const int64_t count = addresses.out(0).elements();
  launches->push_back(Launch::Of(KernelId::fill, {Blocks(count, 256)}, FillArgs{out, count, 2.0f}));
  launches->push_back(Launch::Of(KernelId::fill, {1}, FillArgs{out + count - 1, 1, 5.0f}));
}

// What it computes depends on where it runs.
void EmitItsAddress(const DeviceAddresses& addresses, std::vector<Launch>* launches) {
  auto* const out = addresses.out(0).as<float>();
  const auto bits = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(out) >> 6);
  launches->push_back(
      Launch::Of(KernelId::fill, {1}, FillArgs{out + 1, 2, static_cast<float>(bits % 65521)}));
}

class OnFakeKernels : public ::testing::Test {
 protected:
  void SetUp() override {
    const FakeCudaOptions options = {uint64_t{1} << 30, 1, 9, 0};
    fake_cuda_reset(&options);
    auto library = Library::OpenFile(FLOE_FAKE_CUDA_FOLDER "/libfloe_cuda.so");
    ASSERT_EQ(library.status(), absl::OkStatus());
    auto device = Device::Open(*library, 0, 0);
    ASSERT_EQ(device.status(), absl::OkStatus());
    CompareAllOnDevice(*device);
  }
  void TearDown() override {
    CompareAllOnDevice(nullptr);
    EXPECT_EQ(fake_cuda_alive(), 0);
    EXPECT_STREQ(fake_cuda_complaint(), "");
  }

  // In the place of its input, as a donated one.
  absl::Status Run(const Kernel& kernel) {
    const TensorView views[] = {{DType::kFloat32, Shape({6, 100}), memory_.data()}};
    KernelContext ctx;
    ctx.inputs = views;
    ctx.outputs = views;
    return kernel.Run(ctx);
  }

  std::vector<float> memory_ = std::vector<float>(600, 1.0f);
};

TEST_F(OnFakeKernels, HaveTheEmulatorsBits) {
  EXPECT_EQ(Run(*MakeEmitKernel(EmitTwoAndFive)), absl::OkStatus());
  EXPECT_EQ(memory_[0], 2.0f);
  EXPECT_EQ(memory_[599], 5.0f);
  EXPECT_EQ(ComparedOnDevice(), 1);
  EXPECT_EQ(fake_cuda_kernels_run(), 2);
}

TEST_F(OnFakeKernels, OtherBitsAreAnError) {
  const absl::Status status = Run(*MakeEmitKernel(EmitItsAddress));
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("cuda:0 has other bits than the emulator: 2 of 600 elements of output 0, "
                        "the first is 1"));
}

}  // namespace
}  // namespace floe::cuda
