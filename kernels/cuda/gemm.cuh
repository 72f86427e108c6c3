// Matrix products.
#pragma once

#include "kernels/cuda/tile.cuh"

namespace floe::cuda {

using Tile128 = TileShape<4, 2, 8, 8, 8, 4>;
using Tile64 = TileShape<4, 2, 4, 4, 16, 3>;
using Tile32 = TileShape<2, 1, 4, 4, 16, 4>;

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
    if (args.a_vectors) {
      LoadLeft<Tile, 4>(to, [&](int row, int kk, float* at) {
        const int64_t from = begin[row];
        const bool valid = k0 + kk < args.k && from >= 0;
        CopyAsync16(at, valid ? args.a + from + k0 + kk : args.a, valid);
      });
    } else if (args.a_column == 1) {  // neighbours read neighbours of a row
      LoadLeft<Tile, 1>(to, [&](int row, int kk, float* at) {
        const int64_t from = begin[row];
        const bool valid = k0 + kk < args.k && from >= 0;
        CopyAsync4(at, valid ? args.a + from + k0 + kk : args.a, valid);
      });
    } else {
      GPU_NO_UNROLL
      for (int at = static_cast<int>(threadIdx.x); at < Tile::kM * Tile::kDepth;
           at += Tile::kThreads) {
        const int kk = at / Tile::kM, row = at % Tile::kM;
        const int64_t from = begin[row];
        const bool valid = k0 + kk < args.k && from >= 0;
        CopyAsync4(to + row * Tile::kLineA + kk,
                   valid ? args.a + from + (k0 + kk) * args.a_column : args.a, valid);
      }
    }
  }
};

template <class Tile>
GPU_DEVICE void Gemm(const GemmArgs& args) {
  GPU_SHARED(float, a, Tile::kStages* Tile::kPieceA);
  GPU_SHARED(float, b, Tile::kStages* Tile::kPieceB);
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
GPU_KERNEL(gemm_tf32, GemmArgs, 128) { Gemm<TensorTile<Math::kTf32>>(args); }
GPU_KERNEL(gemm_bf16, GemmArgs, 128) { Gemm<TensorTile<Math::kBf16>>(args); }

// For few rows: what takes time is to read b, so much of it is under way at once. A block has kM
// rows, one for each warp, and kN columns, one for each lane; all warps read b.
struct ThinTile {
  static constexpr int kM = 8, kN = 32, kThreads = 256, kDepth = 64, kStages = 4;
  static constexpr int kLineA = kDepth, kLineB = kN;
  static constexpr int kPieceA = kM * kLineA, kPieceB = kDepth * kLineB;
};

GPU_DEVICE void LoadThinRows(const float* a, const GemmArgs& args, int m0, int k0, float* to) {
  if (args.a_vectors) {
    constexpr int kFours = ThinTile::kDepth / 4;
    const int t = static_cast<int>(threadIdx.x), row = t / kFours, kk = t % kFours * 4;
    if (row >= ThinTile::kM) return;
    const bool valid = m0 + row < args.m && k0 + kk < args.k;
    CopyAsync16(to + row * ThinTile::kLineA + kk, valid ? a + (m0 + row) * args.a_row + k0 + kk : a,
                valid);
    return;
  }
  LoadLeft<ThinTile, 1>(to, [&](int row, int kk, float* at) {
    const bool valid = m0 + row < args.m && k0 + kk < args.k;
    CopyAsync4(at, valid ? a + (m0 + row) * args.a_row + (k0 + kk) * args.a_column : a, valid);
  });
}

GPU_KERNEL(gemm_thin, GemmArgs, ThinTile::kThreads) {
  GPU_SHARED(float, a, ThinTile::kStages* ThinTile::kPieceA);
  GPU_SHARED(float, b, ThinTile::kStages* ThinTile::kPieceB);
  const int64_t z = args.first_product + blockIdx.z;
  const int m0 = static_cast<int>(blockIdx.x) * ThinTile::kM,
            n0 = static_cast<int>(blockIdx.y) * ThinTile::kN;
  const int row = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const float* const left = args.a + BatchOffset(z, args.batch, args.a_batch);
  FactorArgs right = args.b;
  right.at += BatchOffset(z, args.batch, args.b_batch);
  float sum = 0;
  ForPieces<ThinTile>(
      args.k,
      [&](int k0, int stage) {
        LoadThinRows(left, args, m0, k0, a + stage * ThinTile::kPieceA);
        LoadFactor<ThinTile>(right, k0, args.k, n0, args.n, b + stage * ThinTile::kPieceB);
      },
      [&](int stage) {
        if (m0 + row >= args.m) return;
        const float* const line = a + stage * ThinTile::kPieceA + row * ThinTile::kLineA;
        const float* const column = b + stage * ThinTile::kPieceB + lane;
        GPU_UNROLL
        for (int kk = 0; kk < ThinTile::kDepth; kk += 4) {
          const float4 four = *reinterpret_cast<const float4*>(line + kk);
          sum = Fma(four.x, column[kk * ThinTile::kLineB], sum);
          sum = Fma(four.y, column[(kk + 1) * ThinTile::kLineB], sum);
          sum = Fma(four.z, column[(kk + 2) * ThinTile::kLineB], sum);
          sum = Fma(four.w, column[(kk + 3) * ThinTile::kLineB], sum);
        }
      });
  if (m0 + row >= args.m || n0 + lane >= args.n) return;
  EpilogueArgs epilogue = args.epilogue;
  if (epilogue.residual != nullptr) epilogue.residual += z * args.c_batch;
  const int64_t at = (m0 + row) * args.c_row + n0 + lane;
  args.c[z * args.c_batch + at] = Finish(sum + 0.0f, epilogue, at, n0 + lane);
}

}  // namespace floe::cuda
