// Layer normalisation of one row of float32, one implementation for every ISA.
#pragma once

#include <cstddef>

namespace floe::kernels {

// y[i] = (x[i] - mean) / sqrt(variance + epsilon) * scale[i] + offset[i], with the row's own mean
// and variance. y may be x. The bits depend on the row and the ISA alone. n > 0. NaN or an infinity
// in the row makes all of it NaN.
using LayerNormF32 = void (*)(const float* x, const float* scale, const float* offset,
                              float epsilon, float* y, size_t n);

LayerNormF32 PickLayerNormF32();  // for this CPU; call once, when the kernel is made

}  // namespace floe::kernels
