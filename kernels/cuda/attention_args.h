// Of attention: floe's fused op.
#pragma once

#include <cstdint>

#include "kernels/cuda/gemm_args.h"

namespace floe::cuda {

// Elements from one batch, head, place and feature to the next; 0 where one serves all.
struct AttentionSteps {
  int64_t batch, head, place, feature;
};

// out = softmax(scale * q k^T + mask) v, for each head of each batch. The mask's features are the
// keys. blockIdx: tiles of queries, tiles of v's features, heads of batches from the first on.
struct AttentionArgs {
  const float* q;
  FactorArgs k;         // [features, keys] of the first head
  FactorArgs v;         // [keys, width] of the first head
  const float* add;     // a mask of numbers that are added, or null
  const uint8_t* keep;  // a mask of bools, or null: where it is 0, a score is `fill`
  float fill, scale;
  bool zero;  // where it is 0, the weight is 0 in any case
  float* out;
  AttentionSteps q_steps, k_steps, v_steps, mask_steps, out_steps;
  int32_t heads, queries, keys, features, width;
  int64_t first_head;
};

}  // namespace floe::cuda
