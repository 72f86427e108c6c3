// Estimates of single steps. Those of plans and runs: runtime/estimate_test.cc.
#include "kernels/step_cost.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/kernel_test_util.h"

namespace floe {
namespace {

// Of [rows, inner] by constant [inner, columns].
double ProductMicros(int64_t rows, int64_t inner, int64_t columns) {
  const auto made = MakeTestKernel(
      "MatMul", {}, {RandomTensor({rows, inner}, 1), RandomTensor({inner, columns}, 2)},
      {.const_mask = 2});
  EXPECT_TRUE(made.ok()) << made.status();
  if (!made.ok()) return 0;
  const std::vector<TensorType> in = {(*made)->infos[0].type, (*made)->infos[1].type};
  StepCall call{(*made)->node, (*made)->kernel.get(), in, (*made)->output_types, rows};
  call.constants = 2;
  return EstimateMicros(call);
}

// One row reads all weights; some rows take hardly longer, where multiplying is faster than
// reading.
TEST(StepCost, WeightsAreReadOnceByAllRows) {
  EXPECT_GE(ProductMicros(1, 1024, 1024), 65) << "4 MiB at 64 GB/s";
  const std::string isa = kernels::IsaName();
  if (isa == "avx512" || isa == "avx2") {
    EXPECT_LT(ProductMicros(4, 1024, 1024), 2 * ProductMicros(1, 1024, 1024));
  }
  EXPECT_GT(ProductMicros(1024, 1024, 1024), 50 * ProductMicros(1, 1024, 1024));
}

// Columns are computed by whole vectors, however few there are.
TEST(StepCost, FewColumnsTakeAsLongAsAVector) {
  EXPECT_GT(ProductMicros(64, 8, 1), 0.8 * ProductMicros(64, 8, kernels::PickGemm().lanes));
}

}  // namespace
}  // namespace floe
