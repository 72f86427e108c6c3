// The struct of each kernel: plain data, the same for host and device code. Addresses are the
// device's.
#pragma once

#include <cstdint>

#include "kernels/cuda/attention_args.h"
#include "kernels/cuda/chain_args.h"
#include "kernels/cuda/fft_args.h"
#include "kernels/cuda/gemm_args.h"
#include "kernels/cuda/image_args.h"
#include "kernels/cuda/move_args.h"
#include "kernels/cuda/recurrent_args.h"
#include "kernels/cuda/reduce_args.h"
#include "kernels/cuda/winograd_args.h"

namespace floe::cuda {

// Writes `value` to `count` elements.
struct FillArgs {
  float* out;
  int64_t count;
  float value;
};

}  // namespace floe::cuda
