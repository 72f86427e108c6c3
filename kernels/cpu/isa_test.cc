#include "kernels/cpu/isa.h"

#include <gtest/gtest.h>

#include <map>

#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/hwy_targets.h"

namespace floe::kernels {
namespace {

// Also with FLOE_FORCE_ISA, which CI sets to each level.
TEST(Isa, KernelsAreOfTheLevelThatIsNamed) {
  const int64_t scalar = (HWY_TARGETS & HWY_EMU128) != 0 ? 4 : 1;
  const std::map<std::string, int64_t> lanes = {
      {"avx512", 16}, {"avx2", 8}, {"sse4", 4}, {"neon", 4}, {"scalar", scalar}};
  for (int64_t isa : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(isa);
    const std::string before = IsaName();
    EXPECT_EQ(PickGemm().lanes, lanes.at(before)) << hwy::TargetName(isa);
    hwy::SetSupportedTargetsForTest(0);
  }
  const std::string name = IsaName();
  EXPECT_EQ(PickGemm().lanes, lanes.at(name)) << name;
  EXPECT_EQ(IsaName(), name);
}

}  // namespace
}  // namespace floe::kernels
