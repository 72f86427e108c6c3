// Softmax of one row of float32, one implementation for every ISA.
#pragma once

#include <cstddef>

namespace floe::kernels {

// y may be x. The bits depend on the row and the ISA alone. n may be 0. NaN in the row makes all of
// it NaN.
using SoftmaxF32 = void (*)(const float* x, float* y, size_t n);

SoftmaxF32 PickSoftmaxF32(bool log);  // for this CPU; `log`: the logarithm of the softmax. Call
                                      // once, when the kernel is made

}  // namespace floe::kernels
