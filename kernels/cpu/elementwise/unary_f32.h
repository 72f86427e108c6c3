// Element-wise functions of float32, one implementation for every ISA.
#pragma once

#include <cstddef>
#include <string>

namespace floe::kernels {

// y[i] = f(x[i]) for i in [0, n). x == y is allowed, any other overlap is not. No alignment needed;
// n may be 0. Every element gets the same bits wherever it stands. `alpha`: the parameter of
// LeakyRelu, unused otherwise.
using UnaryF32 = void (*)(const float* x, float* y, size_t n, float alpha);

// For this CPU, by the op's name; null when the op has none. Call once, when the kernel is made.
UnaryF32 FindUnaryF32(const std::string& op);

}  // namespace floe::kernels
