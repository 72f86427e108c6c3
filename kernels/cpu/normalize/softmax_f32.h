// Softmax of rows of float32, one implementation for every ISA.
#pragma once

#include <cstddef>

namespace floe::kernels {

// Softmax of each of `rows` rows of n numbers that stand one after the other. y may be x. The bits
// depend on the row and the ISA alone. n may be 0. NaN in a row makes all of it NaN.
using SoftmaxF32 = void (*)(const float* x, float* y, size_t rows, size_t n);

SoftmaxF32 PickSoftmaxF32(bool log);  // for this CPU; `log`: the logarithm of the softmax. Call
                                      // once, when the kernel is made

// What is done to scores before and after their softmax.
struct ScoreMask {
  const float* add = nullptr;   // added, or null: a number for each score, or one for all
  bool each = true;             // of `add`
  const float* keep = nullptr;  // 0 where a score is `fill` instead, or null
  float fill = 0;
  bool zero = false;  // what is filled gets the weight 0 in any case
};

// The softmax of scale * x[i], one row, with `mask`. Otherwise as above.
using ScaledSoftmaxF32 = void (*)(const float* x, float scale, const ScoreMask& mask, float* y,
                                  size_t n);

ScaledSoftmaxF32 PickScaledSoftmaxF32();

}  // namespace floe::kernels
