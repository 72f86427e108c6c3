// Products with weights in bfloat16. recurrent_test.cc has the recurrent layers.
#include <gtest/gtest.h>

#include <cstring>

#include "kernels/cpu/every_isa_for_test.h"
#include "kernels/cpu/gemm/bf16_weights_for_test.h"
#include "kernels/cpu/kernel_test_util.h"

namespace floe {
namespace {

TEST(Bf16Weights, MatMulAtOddSizes) {
  OnEveryIsa([] {
    for (const int64_t rows : {1, 2, 3, 7, 8, 9, 100}) {
      for (const int64_t columns : {5, 8, 9, 16, 31, 33, 67, 130}) {
        // Float32 has another order of sums for few columns of many numbers.
        const int64_t k = rows == 9 && columns > 10 ? 900 : 37;
        Attrs attrs;
        SetEpilogue({.bias = 2}, &attrs);
        const std::vector<Tensor> inputs = {
            RandomTensor({rows, k}, 1), RandomTensor({k, columns}, 2), RandomTensor({columns}, 3)};
        SCOPED_TRACE(absl::StrCat(rows, " rows, ", columns, " columns"));
        ExpectSameBits("MatMul", attrs, inputs, /*constants=*/6, /*weights=*/2);
      }
    }
  });
}

TEST(Bf16Weights, SeveralMatrices) {
  OnEveryIsa([] {
    const std::vector<Tensor> inputs = {RandomTensor({3, 4, 21}, 1), RandomTensor({3, 21, 19}, 2)};
    ExpectSameBits("BatchMatMul", {}, inputs, /*constants=*/2, /*weights=*/2);
  });
}

TEST(Bf16Weights, OfARightSideThatIsNoConstantNothingChanges) {
  const std::vector<Tensor> inputs = {RandomTensor({4, 21}, 1), RandomTensor({21, 19}, 2)};
  RunOptions options;
  const auto want = RunKernel("MatMul", {}, inputs, options);
  options.kernels.precision = Precision::kBf16;
  const auto got = RunKernel("MatMul", {}, inputs, options);
  ASSERT_TRUE(got.ok() && want.ok()) << got.status();
  EXPECT_EQ(std::memcmp((*got)[0].data(), (*want)[0].data(), (*want)[0].bytes()), 0);
}

}  // namespace
}  // namespace floe
