// Kernels that make one number of many: reductions, ArgMax, and what normalises rows.
#pragma once

#include <cstdint>

#include "kernels/cuda/chain_args.h"
#include "kernels/cuda/divider.h"

namespace floe::cuda {

inline constexpr int kReduceThreads = 256, kReduceDims = 4;
// Rows of more elements are folded by a whole block, others by a warp.
inline constexpr int kWarpRow = 1024;

enum class Fold : int32_t { kSum, kMean, kProduct, kMaximum, kMinimum, kAll, kAny, kNorm };

// Output i has the index (i0, i1 ...) in `kept`, and folds `folded` >= 1 elements, which count
// `reduced`.
struct ReduceArgs {
  const void* in;
  void* out;
  int64_t outputs, folded;
  Fold fold;
  Element type;
  int32_t kept_dims, reduced_dims;
  Divider kept[kReduceDims], reduced[kReduceDims];
  int64_t kept_stride[kReduceDims], reduced_stride[kReduceDims];
};

// The place of the largest, or smallest, of `along` elements that lie `inner` apart.
struct ArgMaxArgs {
  const void* in;
  void* out;
  int64_t outputs, along;
  Divider inner;
  Element type, out_type;
  int32_t smallest;
};

// Rows that lie one behind the other.
struct SoftmaxArgs {
  const float* x;
  float* y;
  int64_t rows;
  int32_t columns, log;
};
struct LayerNormArgs {
  const float* x;
  const float* scale;
  const float* offset;
  float* y;
  int64_t rows;
  int32_t columns;
  float epsilon;
};

// y = (x - mean) * (scale / sqrt(variance + epsilon)) + offset, by channel.
struct BatchNormArgs {
  const float* x;
  const float* scale;
  const float* offset;
  const float* mean;
  const float* variance;
  float* y;
  int64_t elements;
  Divider inner, channels;  // x is [batch, channels, inner]
  float epsilon;
};

}  // namespace floe::cuda
