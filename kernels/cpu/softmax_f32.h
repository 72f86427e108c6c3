// Softmax of one row of float32, one implementation for every ISA.
#pragma once

#include <cstddef>

namespace floe::kernels {

// y may be x. The bits depend on the row and the ISA alone. n may be 0. NaN in the row makes all of
// it NaN.
using SoftmaxF32 = void (*)(const float* x, float* y, size_t n);

SoftmaxF32 PickSoftmaxF32(bool log);  // for this CPU; `log`: the logarithm of the softmax. Call
                                      // once, when the kernel is made

// The softmax of scale * x[i] + mask[i], or of scale * x[i] + mask[0] unless `each`; `mask` may be
// null. Otherwise as above.
using ScaledSoftmaxF32 = void (*)(const float* x, float scale, const float* mask, bool each,
                                  float* y, size_t n);

ScaledSoftmaxF32 PickScaledSoftmaxF32();

}  // namespace floe::kernels
