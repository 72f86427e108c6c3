// The list of kernels. A line of FLOE_CUDA_KERNELS is X(name, its struct, threads of a block).
//
// The kernel's symbol is "floe_" and the name. A kernel that is not listed is not built.
#pragma once

#include "kernels/cuda/dim3.h"
#include "kernels/cuda/kernel_args.h"

// Those that compute element by element, move elements, or fold rows of them.
#define FLOE_CUDA_ELEMENT_KERNELS(X)                 \
  X(chain, ChainArgs, kChainThreads)                 \
  X(chain_any, ChainArgs, kChainThreads)             \
  X(copy, CopyArgs, kMoveThreads)                    \
  X(transpose, TransposeArgs, kMoveThreads)          \
  X(fill_units, FillUnitsArgs, kMoveThreads)         \
  X(pad, PadArgs, kMoveThreads)                      \
  X(gather, GatherArgs, kMoveThreads)                \
  X(reduce_lines, ReduceArgs, kReduceThreads)        \
  X(reduce_warp, ReduceArgs, kReduceThreads)         \
  X(reduce_block, ReduceArgs, kReduceThreads)        \
  X(reduce_integers, ReduceArgs, kReduceThreads)     \
  X(argmax_warp, ArgMaxArgs, kReduceThreads)         \
  X(argmax_lines, ArgMaxArgs, kReduceThreads)        \
  X(softmax_warp, SoftmaxArgs, kReduceThreads)       \
  X(softmax_block, SoftmaxArgs, kReduceThreads)      \
  X(layer_norm_warp, LayerNormArgs, kReduceThreads)  \
  X(layer_norm_block, LayerNormArgs, kReduceThreads) \
  X(batch_norm, BatchNormArgs, kReduceThreads)       \
  X(pool, PoolArgs, kImageThreads)                   \
  X(resize_bilinear, ResizeArgs, kImageThreads)      \
  X(resize_nearest, ResizeArgs, kImageThreads)

// Those that multiply on tensor cores, which devices have from compute capability 8.0 on.
#define FLOE_CUDA_TENSOR_KERNELS(X) \
  X(gemm_tf32, GemmArgs, 128)       \
  X(gemm_bf16, GemmArgs, 128)       \
  X(conv_tf32, ConvArgs, 128)       \
  X(conv_bf16, ConvArgs, 128)

#define FLOE_CUDA_WINOGRAD_KERNELS(X)     \
  X(winograd_largest, WinogradArgs, 256)  \
  X(winograd_judge_2, WinogradArgs, 256)  \
  X(winograd_judge_4, WinogradArgs, 256)  \
  X(winograd_input_2, WinogradArgs, 256)  \
  X(winograd_input_4, WinogradArgs, 256)  \
  X(winograd_output_2, WinogradArgs, 256) \
  X(winograd_output_4, WinogradArgs, 256)

#define FLOE_CUDA_KERNELS(X)            \
  X(fill, FillArgs, 256)                \
  FLOE_CUDA_ELEMENT_KERNELS(X)          \
  FLOE_CUDA_TENSOR_KERNELS(X)           \
  FLOE_CUDA_WINOGRAD_KERNELS(X)         \
  X(gemm_128x128, GemmArgs, 256)        \
  X(gemm_64x64, GemmArgs, 256)          \
  X(gemm_32x32, GemmArgs, 64)           \
  X(gemm_thin, GemmArgs, 256)           \
  X(conv_128x128, ConvArgs, 256)        \
  X(conv_64x64, ConvArgs, 256)          \
  X(conv_32x32, ConvArgs, 64)           \
  X(depthwise, DepthwiseArgs, 256)      \
  X(fft_judge, FftArgs, 256)            \
  X(fft_forward, FftArgs, 256)          \
  X(fft_inverse, FftArgs, 256)          \
  X(attention, AttentionArgs, 256)      \
  X(recurrent, RecurrentArgs, 256)      \
  X(recurrent_kept, RecurrentArgs, 256) \
  X(recurrent_wide, RecurrentArgs, 256)

namespace floe::cuda {

enum class KernelId : int {
#define FLOE_CUDA_ID(name, Args, threads) name,
  FLOE_CUDA_KERNELS(FLOE_CUDA_ID)
#undef FLOE_CUDA_ID
      kCount
};

inline bool NeedsTensorCores(KernelId kernel) {
  switch (kernel) {
#define FLOE_CUDA_CASE(name, Args, threads) case KernelId::name:
    FLOE_CUDA_TENSOR_KERNELS(FLOE_CUDA_CASE)
#undef FLOE_CUDA_CASE
    return true;
    default:
      return false;
  }
}

struct KernelEntry {
  const char* name;
  const void* function;  // what cudaLaunchKernel takes; emulated: void (*)(const void* args)
  int threads;
  int args_bytes;
};

}  // namespace floe::cuda

// All kernels in the order of KernelId. Defined by what is compiled for the GPU (kernels.cu) and by
// what is emulated (kernels_host.cc), each in a library of its own.
extern "C" const floe::cuda::KernelEntry* floe_cuda_kernels(int* count);
