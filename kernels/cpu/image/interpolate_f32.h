// Interpolation between rows of float32, linear and by four weights, one implementation for every
// ISA.
#pragma once

#include <cstddef>

namespace floe::kernels {

// y[i] = a[i] + (b[i] - a[i]) * weight for i in [0, n); y may be a or b, no other overlap. The bits
// of an element depend on a[i], b[i], weight and the ISA alone. n may be 0.
using InterpolateF32 = void (*)(const float* a, const float* b, float weight, float* y, size_t n);
InterpolateF32 PickInterpolateF32();  // for this CPU; call once, when the kernel is made

// y[i] = the sum of weights[k] * from[k][i] over k in [0, 4), in the order of k; otherwise the
// same.
using WeighFourF32 = void (*)(const float* const* from, const float* weights, float* y, size_t n);
WeighFourF32 PickWeighFourF32();

}  // namespace floe::kernels
