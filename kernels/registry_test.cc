#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/kernel.h"

namespace floe {
namespace {

using testing::ElementsAre;

absl::StatusOr<std::unique_ptr<Kernel>> MakeNone(const KernelArgs&) {
  return absl::UnimplementedError("made by a test");
}
absl::StatusOr<std::unique_ptr<Kernel>> MakeNoneEither(const KernelArgs&) {
  return absl::UnimplementedError("made by a test, too");
}

TEST(KernelRegistry, FindsByOpDeviceAndDType) {
  const char* const op = "TestOpOfSomeDTypes";
  KernelRegistrar(op, DeviceKind::kCpu, {DType::kFloat32}, MakeNone);
  KernelRegistrar(op, DeviceKind::kCuda, {DType::kFloat32}, MakeNoneEither);
  EXPECT_EQ(FindKernel(op, DeviceKind::kCpu, DType::kFloat32), &MakeNone);
  EXPECT_EQ(FindKernel(op, DeviceKind::kCuda, DType::kFloat32), &MakeNoneEither);
  EXPECT_EQ(FindKernel(op, DeviceKind::kCpu, DType::kFloat64), nullptr);
  EXPECT_THAT(KernelDTypes(op, DeviceKind::kCpu), ElementsAre(DType::kFloat32));
}

TEST(KernelRegistry, TheKernelOfADTypeComesBeforeThatOfAny) {
  const char* const op = "TestOpOfAnyDType";
  KernelRegistrar(op, DeviceKind::kCpu, {}, MakeNone);
  KernelRegistrar(op, DeviceKind::kCpu, {DType::kFloat32}, MakeNoneEither);
  EXPECT_EQ(FindKernel(op, DeviceKind::kCpu, DType::kInt8), &MakeNone);
  EXPECT_EQ(FindKernel(op, DeviceKind::kCpu, DType::kFloat32), &MakeNoneEither);
}

TEST(KernelRegistryDeathTest, RefusesASecondKernelForOneKey) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::vector<DType> dtypes = {DType::kInt8, DType::kFloat32};
  EXPECT_DEATH(KernelRegistrar("MatMul", DeviceKind::kCpu, dtypes, MakeNone),
               "the kernel of MatMul for (int8|float32) is registered twice");
  EXPECT_DEATH(KernelRegistrar("Transpose", DeviceKind::kCpu, {}, MakeNone),
               "the kernel of Transpose for any dtype is registered twice");
}

}  // namespace
}  // namespace floe
