// Element-wise functions of two float32 operands, one implementation for every ISA.
#pragma once

#include <cstddef>
#include <string>

namespace floe::kernels {

// y[i] = f(a[i], b[i]) for i in [0, n); y may be a or b, no other overlap. No alignment needed; n
// may be 0.
using BinaryF32 = void (*)(const float* a, const float* b, float* y, size_t n);

// The same function with both operands running, with b[0] for every b[i], and with a[0] for every
// a[i]. All three give equal bits for equal operands.
struct BinaryF32Set {
  BinaryF32 vectors = nullptr, scalar_b = nullptr, scalar_a = nullptr;
};

// For this CPU, by the op's name; members are null when the op has none. Call once, when the kernel
// is made.
BinaryF32Set FindBinaryF32(const std::string& op);

}  // namespace floe::kernels
