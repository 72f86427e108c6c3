// The loop of a product that matrices and convolutions share: a block computes a tile of the
// output, and its threads copy pieces of both factors into shared memory while they multiply those
// before.
//
// Every element is summed by one thread in ascending k. Which tile it is in changes no bit: what is
// beyond k is zeros in both factors, and adds nothing but the sign of a zero, which the last
// addition settles.
#pragma once

#include "kernels/cuda/activation.cuh"

namespace floe::cuda {

// Warps along m and n, and the sums of a thread. A warp's lanes are 4 by 8; a thread has rows and
// columns in fours, so that 16 bytes are read at once and without conflicts.
template <int kWarpsM_, int kWarpsN_, int kThreadM_, int kThreadN_>
struct TileShape {
  static constexpr int kWarpsN = kWarpsN_, kThreadM = kThreadM_, kThreadN = kThreadN_;
  static constexpr int kWarpM = 4 * kThreadM, kWarpN = 8 * kThreadN;
  static constexpr int kM = kWarpsM_ * kWarpM, kN = kWarpsN * kWarpN;
  static constexpr int kThreads = kWarpsM_ * kWarpsN * 32;
  static constexpr int kDepth = 16;      // of k in a piece
  static constexpr int kLineA = kM + 4;  // apart, so that a column is written without conflicts
  static constexpr int kLineB = kN;
};

// Row and column of a thread's sum (i, j) within the tile.
template <class Tile>
struct Place {
  int row, column;
  GPU_DEVICE Place() {
    const int t = static_cast<int>(threadIdx.x), warp = t / 32, lane = t % 32;
    row = warp / Tile::kWarpsN * Tile::kWarpM + lane / 8 * 4;
    column = warp % Tile::kWarpsN * Tile::kWarpN + lane % 8 * 4;
  }
  GPU_DEVICE int Row(int i) const { return row + i / 4 * 16 + i % 4; }
  GPU_DEVICE int Column(int j) const { return column + j / 4 * 32 + j % 4; }
};

// Copies a piece of the right factor, from row k0 and column n0 on, of which `n` are wanted.
template <class Tile>
GPU_DEVICE void LoadFactor(const FactorArgs& b, int k0, int k, int n0, int n, float* to) {
  const int t = static_cast<int>(threadIdx.x);
  if (b.vectors) {
    constexpr int kFours = Tile::kN / 4;
    GPU_UNROLL
    for (int i = 0; i < Tile::kDepth * kFours / Tile::kThreads; ++i) {
      const int at = t + i * Tile::kThreads, kk = at / kFours, column = at % kFours * 4;
      const bool valid = k0 + kk < k && n0 + column < b.readable;
      CopyAsync16(to + kk * Tile::kLineB + column,
                  valid ? b.at + (k0 + kk) * b.row + n0 + column : b.at, valid);
    }
    return;
  }
  const bool k_first = b.row == 1;  // neighbours read neighbours
  GPU_NO_UNROLL
  for (int i = 0; i < Tile::kDepth * Tile::kN / Tile::kThreads; ++i) {
    const int at = t + i * Tile::kThreads;
    const int kk = k_first ? at % Tile::kDepth : at / Tile::kN;
    const int column = k_first ? at / Tile::kDepth : at % Tile::kN;
    const bool valid = k0 + kk < k && n0 + column < n;
    CopyAsync4(to + kk * Tile::kLineB + column,
               valid ? b.at + (k0 + kk) * b.row + (n0 + column) * b.column : b.at, valid);
  }
}

template <class Tile>
struct Sums {
  float at[Tile::kThreadM][Tile::kThreadN];
};
template <class Tile>
GPU_DEVICE void ClearSums(Sums<Tile>* sums) {
  GPU_UNROLL
  for (int i = 0; i < Tile::kThreadM; ++i) {
    GPU_UNROLL
    for (int j = 0; j < Tile::kThreadN; ++j) sums->at[i][j] = 0;
  }
}

// Adds the products of a piece.
template <class Tile>
GPU_DEVICE void MultiplyPiece(const float* a, const float* b, const Place<Tile>& place,
                              Sums<Tile>* sums) {
  GPU_UNROLL
  for (int kk = 0; kk < Tile::kDepth; ++kk) {
    float left[Tile::kThreadM], right[Tile::kThreadN];
    GPU_UNROLL
    for (int i = 0; i < Tile::kThreadM; i += 4) {
      const float4 four =
          *reinterpret_cast<const float4*>(a + kk * Tile::kLineA + place.row + i * 4);
      left[i] = four.x, left[i + 1] = four.y, left[i + 2] = four.z, left[i + 3] = four.w;
    }
    GPU_UNROLL
    for (int j = 0; j < Tile::kThreadN; j += 4) {
      const float4 four =
          *reinterpret_cast<const float4*>(b + kk * Tile::kLineB + place.column + j * 8);
      right[j] = four.x, right[j + 1] = four.y, right[j + 2] = four.z, right[j + 3] = four.w;
    }
    GPU_UNROLL
    for (int i = 0; i < Tile::kThreadM; ++i) {
      GPU_UNROLL
      for (int j = 0; j < Tile::kThreadN; ++j) {
        sums->at[i][j] = Fma(left[i], right[j], sums->at[i][j]);
      }
    }
  }
}

// Left: LoadPiece(k0, to) starts the copies of a piece, in ascending order of k0, to
// to[kk * kLineA + row]; zeros beyond k and beyond the rows. OutAt(row) says where a row of the
// tile is in the output, or -1. `a` and `b` hold two pieces each.
template <class Tile, class Left>
GPU_DEVICE void MultiplyTile(Left& left, const FactorArgs& right, int k, int n0, int n, float* a,
                             float* b, Sums<Tile>* sums) {
  const Place<Tile> place;
  ClearSums<Tile>(sums);
  left.LoadPiece(0, a);
  LoadFactor<Tile>(right, 0, k, n0, n, b);
  CommitCopies();
  int half = 0;
  GPU_NO_UNROLL
  for (int k0 = 0; k0 < k; k0 += Tile::kDepth) {
    const int next = k0 + Tile::kDepth, other = half ^ 1;
    if (next < k) {
      left.LoadPiece(next, a + other * Tile::kDepth * Tile::kLineA);
      LoadFactor<Tile>(right, next, k, n0, n, b + other * Tile::kDepth * Tile::kLineB);
    }
    CommitCopies();
    WaitForCopies<1>();
    __syncthreads();
    MultiplyPiece<Tile>(a + half * Tile::kDepth * Tile::kLineA,
                        b + half * Tile::kDepth * Tile::kLineB, place, sums);
    __syncthreads();
    half = other;
  }
  WaitForCopies<0>();
}

// Writes the sums of a tile to c; column n0 of the tile is the epilogue's column `first`.
template <class Tile, class Left>
GPU_DEVICE void FinishTile(const Left& left, const Sums<Tile>& sums, float* c, int n0, int n,
                           bool vectors, const EpilogueArgs& epilogue) {
  const Place<Tile> place;
  GPU_UNROLL
  for (int i = 0; i < Tile::kThreadM; ++i) {
    const int64_t line = left.OutAt(place.Row(i));
    GPU_UNROLL
    for (int j = 0; j < Tile::kThreadN; j += 4) {
      const int column = n0 + place.Column(j);
      if (line < 0 || column >= n) continue;
      float value[4];
      GPU_UNROLL
      for (int e = 0; e < 4; ++e) value[e] = sums.at[i][j + e] + 0.0f;
      const int64_t at = line + column;
      if (vectors) {
        if (epilogue.bias != nullptr) {
          const float4 bias = *reinterpret_cast<const float4*>(epilogue.bias + column);
          value[0] += bias.x, value[1] += bias.y, value[2] += bias.z, value[3] += bias.w;
        }
        if (epilogue.residual != nullptr) {
          const float4 more = *reinterpret_cast<const float4*>(epilogue.residual + at);
          value[0] += more.x, value[1] += more.y, value[2] += more.z, value[3] += more.w;
        }
        GPU_UNROLL
        for (int e = 0; e < 4; ++e) value[e] = ActivateCheaply(value[e], epilogue);
        *reinterpret_cast<float4*>(c + at) = make_float4(value[0], value[1], value[2], value[3]);
        continue;
      }
      GPU_UNROLL
      for (int e = 0; e < 4; ++e) {
        if (column + e >= n) continue;
        if (epilogue.bias != nullptr) value[e] += epilogue.bias[column + e];
        if (epilogue.residual != nullptr) value[e] += epilogue.residual[at + e];
        c[at + e] = ActivateCheaply(value[e], epilogue);
      }
    }
  }
  if (IsCheap(epilogue.activation)) return;
  GPU_NO_UNROLL
  for (int e = 0; e < Tile::kThreadM * Tile::kThreadN; ++e) {
    const int64_t line = left.OutAt(place.Row(e / Tile::kThreadN));
    const int column = n0 + place.Column(e % Tile::kThreadN);
    if (line < 0 || column >= n) continue;
    float* const at = c + line + column;  // this thread wrote it
    *at = Activate(*at, epilogue.activation, epilogue.alpha);
  }
}

}  // namespace floe::cuda
