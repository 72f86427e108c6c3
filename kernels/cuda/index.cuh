// Which elements a thread computes, and where they lie.
#pragma once

#include "kernels/cuda/divider.h"
#include "kernels/cuda/gpu.h"

namespace floe::cuda {

// `n` / d, `*rest`: n % d; n >= 0.
GPU_DEVICE int64_t Divide(int64_t n, const Divider& d, int64_t* rest) {
  if (n > 0x7fffffff) {  // rare: a tensor of more than 2^31 elements
    *rest = n % d.divisor;
    return n / d.divisor;
  }
  const auto small = static_cast<uint32_t>(n);
  const auto high = static_cast<uint32_t>(static_cast<uint64_t>(small) * d.multiplier >> 32);
  const uint32_t quotient = (high + small) >> d.shift;
  *rest = small - quotient * d.divisor;
  return quotient;
}

// The number of the thread's `v`-th element, in a block of `kThreads` threads with `kEach` elements
// each: neighbours have neighbouring elements.
template <int kThreads, int kEach>
GPU_DEVICE int64_t ElementOf(int v) {
  return static_cast<int64_t>(blockIdx.x) * (kThreads * kEach) + v * kThreads + threadIdx.x;
}

// The threads of a kernel that are a warp each: `count` rows, one a warp.
template <int kThreads>
GPU_DEVICE int64_t RowOfWarp() {
  return static_cast<int64_t>(blockIdx.x) * (kThreads / 32) + threadIdx.x / 32;
}

}  // namespace floe::cuda
