// Folding a run of float32 into one value, one implementation for every ISA.
#pragma once

#include <cstddef>

namespace floe::kernels {

// The order of operations depends on n and the ISA alone. NaN anywhere gives NaN. n == 0: 0, 1,
// -inf, inf.
using FoldF32 = float (*)(const float* x, size_t n);

struct FoldsF32 {
  FoldF32 sum, product, maximum, minimum;
};
FoldsF32 PickFoldsF32();  // for this CPU; call once, when the kernel is made

}  // namespace floe::kernels
