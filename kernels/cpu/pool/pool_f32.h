// Pooling windows of float32 with the channels inside, one implementation for every ISA.
#pragma once

#include <cstddef>
#include <cstdint>

namespace floe::kernels {

// A box of input positions, strides in elements; dim 2 innermost.
struct PoolBox {
  int64_t count[3];
  int64_t stride[3];
};

// Boxes of one size in a row.
struct PoolRow {
  PoolBox box;
  int64_t count, step;  // elements from one box to the next
  int64_t out_step;     // and from one result to the next, at least `channels`
};

// y[i * out_step + c] for each box i and channel c: the maximum over the box (NaN ignored, of
// nothing the least finite number) or the mean over it, added in order. `x`: where the first
// begins.
using PoolF32 = void (*)(const float* x, const PoolRow& row, size_t channels, float* y);

struct PoolsF32 {
  PoolF32 maximum, mean;
};
PoolsF32 PickPoolsF32();  // for this CPU; call once, when the kernel is made

}  // namespace floe::kernels
