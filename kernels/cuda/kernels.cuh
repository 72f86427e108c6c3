// All kernels and their table: the whole of what is compiled for the GPU, or emulated.
#pragma once

#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/conv.cuh"
#include "kernels/cuda/elementwise.cuh"
#include "kernels/cuda/fft_conv.cuh"
#include "kernels/cuda/fill.cuh"
#include "kernels/cuda/gemm.cuh"
#include "kernels/cuda/image.cuh"
#include "kernels/cuda/kernel_list.h"
#include "kernels/cuda/move.cuh"
#include "kernels/cuda/normalize.cuh"
#include "kernels/cuda/recurrent.cuh"
#include "kernels/cuda/reduce.cuh"
#include "kernels/cuda/winograd.cuh"

extern "C" const floe::cuda::KernelEntry* floe_cuda_kernels(int* count) {
  using namespace floe::cuda;  // NOLINT: the names of the list
  static const KernelEntry entries[] = {
#define FLOE_CUDA_ENTRY(name, Args, threads) \
  {#name, reinterpret_cast<const void*>(&floe_##name), threads, static_cast<int>(sizeof(Args))},
      FLOE_CUDA_KERNELS(FLOE_CUDA_ENTRY)
#undef FLOE_CUDA_ENTRY
  };
  *count = static_cast<int>(KernelId::kCount);
  return entries;
}
