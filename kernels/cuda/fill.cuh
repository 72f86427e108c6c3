#pragma once

#include "kernels/cuda/gpu.h"
#include "kernels/cuda/kernel_args.h"

namespace floe::cuda {

GPU_KERNEL(fill, FillArgs, 256) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (i < args.count) args.out[i] = args.value;
}

}  // namespace floe::cuda
