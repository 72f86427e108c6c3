// Weights in bfloat16 give the bits that the same numbers give as floats.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "kernels/cpu/kernel_test_util.h"
#include "model/half.h"

namespace floe {

inline Tensor Rounded(const Tensor& weights) {
  Tensor rounded = Tensor::Allocate(DType::kFloat32, weights.shape());
  for (int64_t i = 0; i < weights.elements(); ++i)
    static_cast<float*>(rounded.mutable_data())[i] = BFloat16(weights.as<float>()[i]);
  return rounded;
}

// Runs the op with bf16 weights, and with floats that were rounded before. `weights`: which inputs.
inline void ExpectSameBits(const std::string& op, const Attrs& attrs,
                           const std::vector<Tensor>& inputs, uint64_t constants,
                           uint64_t weights) {
  std::vector<Tensor> rounded = inputs;
  for (size_t i = 0; i < inputs.size(); ++i)
    if ((weights >> i & 1) != 0) rounded[i] = Rounded(inputs[i]);
  for (const int threads : {1, 3}) {
    RunOptions options;
    options.const_mask = constants;
    options.threads = threads;
    const auto want = RunKernel(op, attrs, rounded, options);
    const auto exact = RunKernel(op, attrs, inputs, options);
    options.kernels.precision = Precision::kBf16;
    const auto got = RunKernel(op, attrs, inputs, options);
    ASSERT_TRUE(got.ok() && want.ok() && exact.ok()) << got.status() << want.status();
    for (size_t i = 0; i < want->size(); ++i) {
      EXPECT_EQ(std::memcmp((*got)[i].data(), (*want)[i].data(), (*want)[i].bytes()), 0);
      if ((*got)[i].bytes() > 0) {
        EXPECT_NE(std::memcmp((*got)[i].data(), (*exact)[i].data(), (*exact)[i].bytes()), 0);
      }
    }
  }
}

}  // namespace floe
