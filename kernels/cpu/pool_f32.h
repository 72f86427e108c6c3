// One pooling window of float32 with the channels inside, one implementation for every ISA.
#pragma once

#include <cstddef>
#include <cstdint>

namespace floe::kernels {

// A box of input positions, strides in elements; dim 2 innermost.
struct PoolBox {
  int64_t count[3];
  int64_t stride[3];
};

// y[c] for c in [0, channels): the maximum over the box (NaN ignored, of nothing the least finite
// number) or the mean over it, added in order.
using PoolF32 = void (*)(const float* x, const PoolBox& box, size_t channels, float* y);

struct PoolsF32 {
  PoolF32 maximum, mean;
};
PoolsF32 PickPoolsF32();  // for this CPU; call once, when the kernel is made

}  // namespace floe::kernels
