// Matrix products.
#pragma once

#include "kernels/cuda/tile.cuh"

namespace floe::cuda {

using Tile128 = TileShape<4, 2, 8, 8>;
using Tile64 = TileShape<4, 2, 4, 4>;
using Tile32 = TileShape<2, 1, 4, 4>;

// Offset of product z.
GPU_DEVICE int64_t BatchOffset(int64_t z, const int32_t (&batch)[kMaxBatchDims],
                               const int64_t (&strides)[kMaxBatchDims]) {
  int64_t offset = 0;
  GPU_UNROLL
  for (int i = kMaxBatchDims - 1; i >= 0; --i) {
    offset += z % batch[i] * strides[i];
    z /= batch[i];
  }
  return offset;
}

// The rows of a matrix, from m0 on. Where they begin is in shared memory: registers are few.
template <class Tile>
struct MatrixRows {
  static constexpr int kStep = Tile::kThreads / Tile::kDepth;

  const GemmArgs& args;
  int m0;
  int64_t* begin;  // of each row of the tile in args.a; -1: there is none

  GPU_DEVICE void FindRows(int64_t product) {
    for (int i = static_cast<int>(threadIdx.x); i < Tile::kM; i += Tile::kThreads) {
      begin[i] = m0 + i < args.m ? product + (m0 + i) * args.a_row : -1;
    }
    __syncthreads();
  }
  GPU_DEVICE int64_t OutAt(int i) const { return m0 + i < args.m ? (m0 + i) * args.c_row : -1; }
  GPU_DEVICE void LoadPiece(int k0, float* to) {
    const int t = static_cast<int>(threadIdx.x);
    if (args.a_column == 1) {  // neighbours read neighbours of a row
      const int kk = t % Tile::kDepth, first = t / Tile::kDepth;
      GPU_UNROLL
      for (int i = 0; i < Tile::kM / kStep; ++i) {
        const int row = first + i * kStep;
        const int64_t from = begin[row];
        const bool valid = k0 + kk < args.k && from >= 0;
        CopyAsync4(to + kk * Tile::kLineA + row, valid ? args.a + from + k0 + kk : args.a, valid);
      }
      return;
    }
    GPU_NO_UNROLL
    for (int at = t; at < Tile::kM * Tile::kDepth; at += Tile::kThreads) {
      const int kk = at / Tile::kM, row = at % Tile::kM;
      const int64_t from = begin[row];
      const bool valid = k0 + kk < args.k && from >= 0;
      CopyAsync4(to + kk * Tile::kLineA + row,
                 valid ? args.a + from + (k0 + kk) * args.a_column : args.a, valid);
    }
  }
};

template <class Tile>
GPU_DEVICE void Gemm(const GemmArgs& args) {
  GPU_SHARED(float, a, 2 * Tile::kDepth * Tile::kLineA);
  GPU_SHARED(float, b, 2 * Tile::kDepth * Tile::kLineB);
  GPU_SHARED(int64_t, begin, Tile::kM);
  const int64_t z = args.first_product + blockIdx.z;
  const int m0 = static_cast<int>(blockIdx.x) * Tile::kM,
            n0 = static_cast<int>(blockIdx.y) * Tile::kN;
  MatrixRows<Tile> left = {args, m0, begin};
  left.FindRows(BatchOffset(z, args.batch, args.a_batch));
  FactorArgs right = args.b;
  right.at += BatchOffset(z, args.batch, args.b_batch);
  Sums<Tile> sums;
  MultiplyTile<Tile>(left, right, args.k, n0, args.n, a, b, &sums);
  EpilogueArgs epilogue = args.epilogue;
  if (epilogue.residual != nullptr) epilogue.residual += z * args.c_batch;
  FinishTile<Tile>(left, sums, args.c + z * args.c_batch, n0, args.n, args.c_vectors, epilogue);
}

GPU_KERNEL(gemm_128x128, GemmArgs, Tile128::kThreads) { Gemm<Tile128>(args); }
GPU_KERNEL(gemm_64x64, GemmArgs, Tile64::kThreads) { Gemm<Tile64>(args); }
GPU_KERNEL(gemm_32x32, GemmArgs, Tile32::kThreads) { Gemm<Tile32>(args); }

// For few rows: what takes time is to read b. A block has kThinRows rows, one for each warp, and
// kThinColumns columns, one for each lane; all warps read b.
struct ThinTile {
  static constexpr int kRows = 8, kN = 32, kThreads = 256, kDepth = 64;
  static constexpr int kLineB = kN;
};

GPU_DEVICE void LoadThinRows(const float* a, const GemmArgs& args, int m0, int k0, float* to) {
  GPU_UNROLL
  for (int i = 0; i < ThinTile::kRows * ThinTile::kDepth / ThinTile::kThreads; ++i) {
    const int at = static_cast<int>(threadIdx.x) + i * ThinTile::kThreads;
    const int row = at / ThinTile::kDepth, kk = at % ThinTile::kDepth;
    const bool valid = m0 + row < args.m && k0 + kk < args.k;
    CopyAsync4(to + at, valid ? a + (m0 + row) * args.a_row + (k0 + kk) * args.a_column : a, valid);
  }
}

GPU_KERNEL(gemm_thin, GemmArgs, ThinTile::kThreads) {
  GPU_SHARED(float, a, 2 * ThinTile::kRows * ThinTile::kDepth);
  GPU_SHARED(float, b, 2 * ThinTile::kDepth * ThinTile::kN);
  const int64_t z = args.first_product + blockIdx.z;
  const int m0 = static_cast<int>(blockIdx.x) * ThinTile::kRows,
            n0 = static_cast<int>(blockIdx.y) * ThinTile::kN;
  const int row = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const float* const left = args.a + BatchOffset(z, args.batch, args.a_batch);
  FactorArgs right = args.b;
  right.at += BatchOffset(z, args.batch, args.b_batch);
  float sum = 0;
  int half = 0;
  LoadThinRows(left, args, m0, 0, a);
  LoadFactor<ThinTile>(right, 0, args.k, n0, args.n, b);
  CommitCopies();
  GPU_NO_UNROLL
  for (int k0 = 0; k0 < args.k; k0 += ThinTile::kDepth) {
    const int next = k0 + ThinTile::kDepth, other = half ^ 1;
    if (next < args.k) {
      LoadThinRows(left, args, m0, next, a + other * ThinTile::kRows * ThinTile::kDepth);
      LoadFactor<ThinTile>(right, next, args.k, n0, args.n,
                           b + other * ThinTile::kDepth * ThinTile::kN);
    }
    CommitCopies();
    WaitForCopies<1>();
    __syncthreads();
    if (m0 + row < args.m) {
      const float* const line = a + (half * ThinTile::kRows + row) * ThinTile::kDepth;
      const float* const column = b + half * ThinTile::kDepth * ThinTile::kN + lane;
      GPU_UNROLL
      for (int kk = 0; kk < ThinTile::kDepth; ++kk) {
        sum = Fma(line[kk], column[kk * ThinTile::kN], sum);
      }
    }
    __syncthreads();
    half = other;
  }
  WaitForCopies<0>();
  if (m0 + row >= args.m || n0 + lane >= args.n) return;
  EpilogueArgs epilogue = args.epilogue;
  if (epilogue.residual != nullptr) epilogue.residual += z * args.c_batch;
  const int64_t at = (m0 + row) * args.c_row + n0 + lane;
  args.c[z * args.c_batch + at] = Finish(sum + 0.0f, epilogue, at, n0 + lane);
}

}  // namespace floe::cuda
