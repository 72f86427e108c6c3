// Which devices there are and which a model gets, over the fake CUDA runtime.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "kernels/cuda/device/devices.h"
#include "kernels/cuda/device/errors.h"
#include "tests/cuda/fake_cudart.h"

namespace floe::cuda {
namespace {

using testing::HasSubstr;

constexpr int64_t kMiB = int64_t{1} << 20;

class OnFakeDevices : public testing::Test {
 protected:
  void SetUp() override {
    setenv("FLOE_CUDA_LIBRARY", FLOE_FAKE_CUDA_FOLDER "/libfloe_cuda.so", 1);
    Reset(2, 9);
  }
  void TearDown() override {
    unsetenv("FLOE_CUDA_LIBRARY");
    EXPECT_EQ(fake_cuda_alive(), 0);
  }
  static void Reset(int devices, int major) {
    const FakeCudaOptions options = {100 * kMiB, devices, major, 0};
    fake_cuda_reset(&options);
  }
  Devices devices_{[](int64_t bytes) { return bytes / 2; }};
};

TEST_F(OnFakeDevices, AreOpenedOnceWithTheirLimits) {
  EXPECT_EQ(devices_.opened(), nullptr);
  EXPECT_EQ(fake_cuda_calls(), 0);
  const Devices::Opened& opened = devices_.Open();
  const int64_t calls = fake_cuda_calls();
  ASSERT_EQ(opened.devices.size(), 2u) << opened.why_none;
  EXPECT_EQ(opened.devices[1]->name(), "cuda:1");
  EXPECT_EQ(opened.devices[1]->budget().limit(), 50 * kMiB);
  EXPECT_TRUE(opened.why_none.ok());
  EXPECT_THAT(opened.versions, HasSubstr("driver 13.0"));
  EXPECT_EQ(&devices_.Open(), &opened);
  EXPECT_EQ(devices_.opened(), &opened);
  EXPECT_EQ(fake_cuda_calls(), calls);
}

TEST_F(OnFakeDevices, TheFreestIsTheFirstUntilItHoldsMore) {
  const auto first = devices_.FindFreest();
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ((*first)->index(), 0);
  const auto held = DeviceBuffer::Make(*first, kMiB);
  ASSERT_TRUE(held.ok()) << held.status();
  EXPECT_EQ(FreeBytes(**first), 49 * kMiB);
  EXPECT_EQ((*devices_.FindFreest())->index(), 1);
  EXPECT_EQ((*devices_.Find(0))->index(), 0) << "whoever names one gets it";
}

TEST_F(OnFakeDevices, OneThatThereIsNotIsNamed) {
  const auto missing = devices_.Find(2);
  EXPECT_TRUE(absl::IsNotFound(missing.status())) << missing.status();
  EXPECT_THAT(
      std::string(missing.status().message()),
      AllOf(HasSubstr("cuda:2"), HasSubstr("2 devices"), HasSubstr("CUDA_VISIBLE_DEVICES")));
}

TEST_F(OnFakeDevices, LostOnesGetNothing) {
  const auto first = devices_.Find(0), second = devices_.Find(1);
  EXPECT_FALSE((*first)->Check(kCudaIllegalAddress, "a test").ok());
  EXPECT_EQ((*devices_.FindFreest())->index(), 1);
  EXPECT_FALSE((*second)->Check(kCudaIllegalAddress, "a test").ok());
  const auto none = devices_.FindFreest();
  EXPECT_TRUE(absl::IsUnavailable(none.status())) << none.status();
  EXPECT_THAT(std::string(none.status().message()), HasSubstr("lost"));
}

TEST_F(OnFakeDevices, VersionsNameThem) {
  EXPECT_EQ(DescribeLibrary(),
            "CUDA 13.0, driver 13.0\ncuda:0: Fake H100, compute capability 9.0\n"
            "cuda:1: Fake H100, compute capability 9.0");
}

TEST_F(OnFakeDevices, OldOnesAreRefusedWithTheReason) {
  Reset(1, 6);
  const auto none = devices_.FindFreest();
  EXPECT_THAT(std::string(none.status().message()), HasSubstr("compute capability 6.0"));
  EXPECT_THAT(std::string(devices_.Find(0).status().message()), HasSubstr("cuda:0"));
  EXPECT_FALSE(devices_.Open().no_library);
}

TEST_F(OnFakeDevices, WithoutALibraryThereIsNone) {
  setenv("FLOE_CUDA_LIBRARY", "/nowhere/libfloe_cuda.so", 1);
  EXPECT_FALSE(devices_.Open().no_library) << "somebody wanted one";
  EXPECT_THAT(std::string(devices_.FindFreest().status().message()), HasSubstr("/nowhere"));
  EXPECT_THAT(DescribeLibrary(), HasSubstr("no CUDA: there is no file /nowhere"));
}

}  // namespace
}  // namespace floe::cuda
