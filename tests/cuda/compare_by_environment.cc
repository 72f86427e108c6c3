// Linked with a test program: FLOE_COMPARE_DEVICE=0 compares every kernel that it runs for devices
// on device 0 with the emulator.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "tests/cuda/kernel_on_device.h"

namespace floe::cuda {
namespace {

class CompareByEnvironment : public ::testing::Environment {
 public:
  void SetUp() override {
    const char* const index = std::getenv("FLOE_COMPARE_DEVICE");
    if (index == nullptr) return;
    auto library = Library::Open();
    ASSERT_TRUE(library.ok()) << library.status();
    auto device = Device::Open(*library, std::atoi(index), 0);
    ASSERT_TRUE(device.ok()) << device.status();
    std::printf("comparing with %s, %s\n", (*device)->name().c_str(), (*device)->properties().name);
    CompareAllOnDevice(*device);
    compares_ = true;
  }
  void TearDown() override {
    if (!compares_) return;
    std::printf("%lld kernels were compared\n", static_cast<long long>(ComparedOnDevice()));
    const bool skipped = ::testing::UnitTest::GetInstance()->successful_test_count() == 0;
    EXPECT_TRUE(ComparedOnDevice() > 0 || skipped) << "nothing ran on the device";
    CompareAllOnDevice(nullptr);
  }

 private:
  bool compares_ = false;
};

const auto* const environment = ::testing::AddGlobalTestEnvironment(new CompareByEnvironment);

}  // namespace
}  // namespace floe::cuda
