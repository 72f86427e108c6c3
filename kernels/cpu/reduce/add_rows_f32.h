// Sums of rows of float32 that lie anywhere, one implementation for every ISA.
#pragma once

#include <cstddef>

namespace floe::kernels {

// y[j] += rows[0][j], then rows[1][j] and so on, for j in [0, n). y is none of the rows. No
// alignment needed.
using AddRowsF32 = void (*)(const float* const* rows, size_t count, float* y, size_t n);

AddRowsF32 PickAddRowsF32();  // for this CPU; call once, when the kernel is made

}  // namespace floe::kernels
