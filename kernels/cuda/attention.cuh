// Attention: a block has 64 queries of a head. Keys pass in tiles of 64, in ascending order: the
// largest score so far, the sum of the weights and the weighted sums are kept, and scaled again
// where a larger score comes. What is computed for a query depends on nothing but its own numbers,
// the keys and the values.
#pragma once

#include "kernels/cuda/attention_args.h"
#include "kernels/cuda/gemm.cuh"

namespace floe::cuda {

struct QueryRows {
  using Tile = Tile64;
  static constexpr int kStep = Tile::kThreads / Tile::kDepth;

  const AttentionArgs& args;
  const float* q;  // of the first query
  int left;        // how many queries there are from it on

  GPU_DEVICE void LoadPiece(int k0, float* to) {
    const int kk = static_cast<int>(threadIdx.x) % Tile::kDepth,
              first = static_cast<int>(threadIdx.x) / Tile::kDepth;
    GPU_UNROLL
    for (int i = 0; i < Tile::kM / kStep; ++i) {
      const int row = first + i * kStep;
      const bool valid = k0 + kk < args.features && row < left;
      CopyAsync4(to + kk * Tile::kLineA + row,
                 valid ? q + row * args.q_steps.place + (k0 + kk) * args.q_steps.feature : args.q,
                 valid);
    }
  }
};

// What the four threads of a query know of the scores so far.
struct QueryState {
  float most, sum;
};

// One of the four threads of a query: makes weights of 16 scores, which are 4 apart in `scores`
// (by key, then query). Returns what the sums so far are to be multiplied by.
GPU_DEVICE float WeighScores(const AttentionArgs& args, const uint8_t* keep, int keys,
                             float* scores, QueryState* state) {
  using Tile = Tile64;
  constexpr int kKeys = Tile::kN / 4;
  const int query = static_cast<int>(threadIdx.x) / 4, part = static_cast<int>(threadIdx.x) % 4;
  float* const mine = scores + part * kKeys * Tile::kLineA + query;
  float most = mine[0];
  for (int i = 1; i < kKeys; ++i) most = Max(most, mine[i * Tile::kLineA]);
  most = Max(most, __shfl_xor_sync(0xffffffffu, most, 1));
  most = Max(most, __shfl_xor_sync(0xffffffffu, most, 2));
  most = Max(state->most, most);
  const bool nothing = most == -Infinity();  // every score so far is -infinity
  float sum = 0;
  for (int i = 0; i < kKeys; ++i) {
    const float weight = nothing ? 0.0f : Exp(mine[i * Tile::kLineA] - most);
    sum += weight;
    const int key = part * kKeys + i;
    const bool hidden =
        keep != nullptr && args.zero && key < keys && keep[key * args.mask_steps.feature] == 0;
    mine[i * Tile::kLineA] = hidden ? 0.0f : weight;
  }
  sum += __shfl_xor_sync(0xffffffffu, sum, 1);
  sum += __shfl_xor_sync(0xffffffffu, sum, 2);
  const float factor = state->most == -Infinity() ? 0.0f : Exp(state->most - most);
  state->most = most;
  state->sum = Fma(state->sum, factor, sum);
  return factor;
}

GPU_KERNEL(attention, AttentionArgs, Tile64::kThreads) {
  using Tile = Tile64;
  GPU_SHARED(float, a, 2 * Tile::kDepth * Tile::kLineA);
  GPU_SHARED(float, b, 2 * Tile::kDepth * Tile::kLineB);
  GPU_SHARED(float, scores, Tile::kN* Tile::kLineA);
  GPU_SHARED(float, factors, Tile::kM);
  const int64_t z = args.first_head + blockIdx.z, batch = z / args.heads, head = z % args.heads;
  const int q0 = static_cast<int>(blockIdx.x) * Tile::kM,
            n0 = static_cast<int>(blockIdx.y) * Tile::kN;
  const int left = args.queries - q0 < Tile::kM ? args.queries - q0 : Tile::kM;
  QueryRows rows = {
      args,
      args.q + batch * args.q_steps.batch + head * args.q_steps.head + q0 * args.q_steps.place,
      left};
  FactorArgs keys = args.k, values = args.v;
  keys.at += batch * args.k_steps.batch + head * args.k_steps.head;
  values.at += batch * args.v_steps.batch + head * args.v_steps.head;
  const int64_t mask = batch * args.mask_steps.batch + head * args.mask_steps.head;
  const Place<Tile> place;
  const int query = static_cast<int>(threadIdx.x) / 4;  // of WeighScores
  QueryState state = {-Infinity(), 0};
  Sums<Tile> sums;
  GPU_UNROLL
  for (int i = 0; i < Tile::kThreadM; ++i) {
    GPU_UNROLL
    for (int j = 0; j < Tile::kThreadN; ++j) sums.at[i][j] = 0;
  }
  GPU_NO_UNROLL
  for (int key0 = 0; key0 < args.keys; key0 += Tile::kN) {
    Sums<Tile> products;
    MultiplyTile<Tile>(rows, keys, args.features, key0, args.keys, a, b, &products);
    LoadFactor<Tile>(values, key0, args.keys, n0, args.width, b);
    CommitCopies();
    GPU_UNROLL
    for (int i = 0; i < Tile::kThreadM; ++i) {
      const int row = place.Row(i);
      GPU_UNROLL
      for (int j = 0; j < Tile::kThreadN; ++j) {
        const int key = key0 + place.Column(j);
        float score = -Infinity();
        if (key < args.keys && row < left) {
          score = (products.at[i][j] + 0.0f) * args.scale;
          const int64_t at =
              mask + (q0 + row) * args.mask_steps.place + key * args.mask_steps.feature;
          if (args.add != nullptr) score += args.add[at];
          if (args.keep != nullptr && args.keep[at] == 0) score = args.fill;
        }
        scores[place.Column(j) * Tile::kLineA + row] = score;
      }
    }
    __syncthreads();
    const uint8_t* const keep = args.keep == nullptr || query >= left
                                    ? nullptr
                                    : args.keep + mask + (q0 + query) * args.mask_steps.place +
                                          key0 * args.mask_steps.feature;
    const float factor = WeighScores(args, keep, args.keys - key0, scores, &state);
    if (threadIdx.x % 4 == 0) factors[query] = factor;
    __syncthreads();
    GPU_UNROLL
    for (int i = 0; i < Tile::kThreadM; ++i) {
      const float by = factors[place.Row(i)];
      GPU_UNROLL
      for (int j = 0; j < Tile::kThreadN; ++j) sums.at[i][j] *= by;
    }
    int half = 0;
    GPU_NO_UNROLL
    for (int piece = 0; piece < Tile::kN; piece += Tile::kDepth) {
      const int next = piece + Tile::kDepth, other = half ^ 1;
      if (next < Tile::kN)
        LoadFactor<Tile>(values, key0 + next, args.keys, n0, args.width,
                         b + other * Tile::kDepth * Tile::kLineB);
      CommitCopies();
      WaitForCopies<1>();
      __syncthreads();
      MultiplyPiece<Tile>(scores + piece * Tile::kLineA, b + half * Tile::kDepth * Tile::kLineB,
                          place, &sums);
      __syncthreads();
      half = other;
    }
  }
  if (threadIdx.x % 4 == 0) factors[query] = state.sum;
  __syncthreads();
  float* const out = args.out + batch * args.out_steps.batch + head * args.out_steps.head;
  GPU_UNROLL
  for (int i = 0; i < Tile::kThreadM; ++i) {
    const int row = place.Row(i);
    GPU_UNROLL
    for (int j = 0; j < Tile::kThreadN; ++j) {
      const int column = n0 + place.Column(j);
      if (row >= left || column >= args.width) continue;
      // Weights of no keys add up to nothing, and so do their values.
      out[(q0 + row) * args.out_steps.place + column * args.out_steps.feature] =
          args.keys == 0 ? 0.0f : Div(sums.at[i][j], factors[row]);
    }
  }
}

}  // namespace floe::cuda
