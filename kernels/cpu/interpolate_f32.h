// Linear interpolation of rows of float32, one implementation for every ISA.
#pragma once

#include <cstddef>

namespace floe::kernels {

// y[i] = a[i] + (b[i] - a[i]) * weight for i in [0, n); y may be a or b, no other overlap. The bits
// of an element depend on a[i], b[i], weight and the ISA alone. n may be 0.
using InterpolateF32 = void (*)(const float* a, const float* b, float weight, float* y, size_t n);
InterpolateF32 PickInterpolateF32();  // for this CPU; call once, when the kernel is made

}  // namespace floe::kernels
