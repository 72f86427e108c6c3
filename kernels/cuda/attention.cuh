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

  const AttentionArgs& args;
  const float* q;  // of the first query
  int left;        // how many queries there are from it on

  GPU_DEVICE void LoadPiece(int k0, float* to) {
    LoadLeft<Tile, 1>(to, [&](int row, int kk, float* at) {
      const bool valid = k0 + kk < args.features && row < left;
      CopyAsync4(at,
                 valid ? q + row * args.q_steps.place + (k0 + kk) * args.q_steps.feature : args.q,
                 valid);
    });
  }
};

// Elements of shared memory from a query's scores to those of the next.
constexpr int kScoreLine = Tile64::kN + 4;

// What the four threads of a query know of the scores so far.
struct QueryState {
  float most, sum;
};

// One of the four threads of a query: makes weights of every fourth score of a tile (`scores` is by
// query, then key; `keep` the query's mask, or null). Returns what the sums so far are to be
// multiplied by.
GPU_DEVICE float WeighScores(const AttentionArgs& args, const uint8_t* keep, int key0,
                             float* scores, QueryState* state) {
  constexpr int kKeys = Tile64::kN / 4;
  const int query = static_cast<int>(threadIdx.x) / 4, part = static_cast<int>(threadIdx.x) % 4;
  float* const mine = scores + query * kScoreLine + part;
  float most = mine[0];
  for (int i = 1; i < kKeys; ++i) most = Max(most, mine[i * 4]);
  most = Max(most, __shfl_xor_sync(0xffffffffu, most, 1));
  most = Max(most, __shfl_xor_sync(0xffffffffu, most, 2));
  most = Max(state->most, most);
  const bool nothing = most == -Infinity();  // every score so far is -infinity
  float sum = 0;
  for (int i = 0; i < kKeys; ++i) {
    const float weight = nothing ? 0.0f : Exp(mine[i * 4] - most);
    sum += weight;
    const int key = key0 + i * 4 + part;
    const bool hidden =
        keep != nullptr && args.zero && key < args.keys && keep[key * args.mask_steps.feature] == 0;
    mine[i * 4] = hidden ? 0.0f : weight;
  }
  sum += __shfl_xor_sync(0xffffffffu, sum, 1);
  sum += __shfl_xor_sync(0xffffffffu, sum, 2);
  const float factor = state->most == -Infinity() ? 0.0f : Exp(state->most - most);
  state->most = most;
  state->sum = Fma(state->sum, factor, sum);
  return factor;
}

// A head's mask for the queries of a block.
struct QueryMask {
  const float* add;
  const uint8_t* keep;
};

// Writes the scores of a tile of keys: -infinity for those beyond the end.
GPU_DEVICE void PutScores(const AttentionArgs& args, const Sums<Tile64>& products,
                          const Place<Tile64>& place, const QueryMask& mask, int left, int key0,
                          float* scores) {
  using Tile = Tile64;
  GPU_UNROLL
  for (int i = 0; i < Tile::kThreadM; ++i) {
    const int row = place.Row(i);
    GPU_UNROLL
    for (int j = 0; j < Tile::kThreadN; ++j) {
      const int key = key0 + place.Column(j);
      float score = -Infinity();
      if (key < args.keys && row < left) {
        const int64_t at = row * args.mask_steps.place + key * args.mask_steps.feature;
        score = (products.at[i][j] + 0.0f) * args.scale;
        if (mask.add != nullptr) score += mask.add[at];
        if (mask.keep != nullptr && mask.keep[at] == 0) score = args.fill;
      }
      scores[row * kScoreLine + place.Column(j)] = score;
    }
  }
}

// Adds the values of a tile of keys by their weights. The copy of the first piece is under way.
GPU_DEVICE void AddValues(const FactorArgs& values, int key0, int keys, int n0, int width,
                          const float* weights, float* b, const Place<Tile64>& place,
                          Sums<Tile64>* sums) {
  using Tile = Tile64;
  int half = 0;
  GPU_NO_UNROLL
  for (int piece = 0; piece < Tile::kN; piece += Tile::kDepth) {
    const int next = piece + Tile::kDepth, other = half ^ 1;
    if (next < Tile::kN) {
      LoadFactor<Tile>(values, key0 + next, keys, n0, width, b + other * Tile::kPieceB);
    }
    CommitCopies();
    WaitForCopies<1>();
    __syncthreads();
    MultiplyPiece<Tile, kScoreLine>(weights + piece, b + half * Tile::kPieceB, place, sums);
    __syncthreads();
    half = other;
  }
}

// Multiplies the sums of each query by its factor.
GPU_DEVICE void ScaleSums(const float* factors, const Place<Tile64>& place, Sums<Tile64>* sums) {
  GPU_UNROLL
  for (int i = 0; i < Tile64::kThreadM; ++i) {
    const float by = factors[place.Row(i)];
    GPU_UNROLL
    for (int j = 0; j < Tile64::kThreadN; ++j) sums->at[i][j] *= by;
  }
}

// Divides the sums by those of the weights, and writes them. Without keys there is nothing.
GPU_DEVICE void PutQueries(const AttentionArgs& args, const Sums<Tile64>& sums,
                           const float* weights, const Place<Tile64>& place, int left, int n0,
                           float* out) {
  GPU_UNROLL
  for (int i = 0; i < Tile64::kThreadM; ++i) {
    const int row = place.Row(i);
    GPU_UNROLL
    for (int j = 0; j < Tile64::kThreadN; ++j) {
      const int column = n0 + place.Column(j);
      if (row >= left || column >= args.width) continue;
      out[row * args.out_steps.place + column * args.out_steps.feature] =
          args.keys == 0 ? 0.0f : Div(sums.at[i][j], weights[row]);
    }
  }
}

GPU_DEVICE int64_t HeadOffset(const AttentionSteps& steps, int64_t batch, int64_t head) {
  return batch * steps.batch + head * steps.head;
}

GPU_KERNEL(attention, AttentionArgs, Tile64::kThreads) {
  using Tile = Tile64;
  GPU_SHARED(float, a, Tile::kStages* Tile::kPieceA);
  GPU_SHARED(float, b, Tile::kStages* Tile::kPieceB);
  GPU_SHARED(float, scores, Tile::kM* kScoreLine);
  GPU_SHARED(float, factors, Tile::kM);
  const int64_t z = args.first_head + blockIdx.z, batch = z / args.heads, head = z % args.heads;
  const int64_t q0 = static_cast<int64_t>(blockIdx.x) * Tile::kM;
  const int n0 = static_cast<int>(blockIdx.y) * Tile::kN;
  const int left = static_cast<int>(args.queries - q0 < Tile::kM ? args.queries - q0 : Tile::kM);
  QueryRows rows = {args, args.q + HeadOffset(args.q_steps, batch, head) + q0 * args.q_steps.place,
                    left};
  FactorArgs keys = args.k, values = args.v;
  keys.at += HeadOffset(args.k_steps, batch, head);
  values.at += HeadOffset(args.v_steps, batch, head);
  const int64_t of_mask = HeadOffset(args.mask_steps, batch, head) + q0 * args.mask_steps.place;
  const QueryMask mask = {args.add == nullptr ? nullptr : args.add + of_mask,
                          args.keep == nullptr ? nullptr : args.keep + of_mask};
  const Place<Tile> place;
  const int query = static_cast<int>(threadIdx.x) / 4;  // of WeighScores
  const uint8_t* const keep =
      mask.keep == nullptr || query >= left ? nullptr : mask.keep + query * args.mask_steps.place;
  QueryState state = {-Infinity(), 0};
  Sums<Tile> sums;
  ClearSums<Tile>(&sums);
  GPU_NO_UNROLL
  for (int key0 = 0; key0 < args.keys; key0 += Tile::kN) {
    Sums<Tile> products;
    MultiplyTile<Tile>(rows, keys, args.features, key0, args.keys, a, b, &products);
    __syncthreads();  // nobody reads b any more
    LoadFactor<Tile>(values, key0, args.keys, n0, args.width, b);
    CommitCopies();
    PutScores(args, products, place, mask, left, key0, scores);
    __syncthreads();
    const float factor = WeighScores(args, keep, key0, scores, &state);
    if (threadIdx.x % 4 == 0) factors[query] = factor;
    __syncthreads();
    ScaleSums(factors, place, &sums);
    AddValues(values, key0, args.keys, n0, args.width, scores, b, place, &sums);
  }
  if (threadIdx.x % 4 == 0) factors[query] = state.sum;
  __syncthreads();
  PutQueries(args, sums, factors, place, left, n0,
             args.out + HeadOffset(args.out_steps, batch, head) + q0 * args.out_steps.place);
}

}  // namespace floe::cuda
