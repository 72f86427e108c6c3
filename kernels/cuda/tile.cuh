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

// How products are made: with factors as they are, or rounded for tensor cores.
enum class Math : uint8_t { kFma, kTf32, kBf16 };

// Warps along m and n, the sums of a thread, and the pieces: how long they are in k, and how many
// are in shared memory at once. A warp's lanes are 4 by 8; a thread's columns are in fours, so that
// 16 bytes are read at once. Rows of the left factor lie 4 elements apart from a multiple of 8: the
// four that a warp reads at once are in different banks.
template <int kWarpsM_, int kWarpsN_, int kThreadM_, int kThreadN_, int kDepth_, int kStages_>
struct TileShape {
  static constexpr int kWarpsN = kWarpsN_, kThreadM = kThreadM_, kThreadN = kThreadN_;
  static constexpr int kWarpM = 4 * kThreadM, kWarpN = 8 * kThreadN;
  static constexpr int kM = kWarpsM_ * kWarpM, kN = kWarpsN * kWarpN;
  static constexpr int kThreads = kWarpsM_ * kWarpsN * 32;
  static constexpr int kDepth = kDepth_, kStages = kStages_;
  static constexpr int kLineA = kDepth + 4, kLineB = kN;
  static constexpr int kPieceA = kM * kLineA, kPieceB = kDepth * kLineB;  // elements
  static constexpr int kRun = 4;  // a thread's sums in neighbouring columns
  static constexpr Math kMath = Math::kFma;
};

// For tensor cores: a warp has 2 by 4 products of 16 x 8 elements (mma.m16n8). One tile for all
// sizes, so that nothing about a sum can follow the batch. Lines of b are 8 elements longer than a
// multiple of 32, so that the four rows that a warp reads at once are in different banks.
template <Math kMath_>
struct TensorTile {
  static constexpr int kWarpsN = 2, kThreadM = 4, kThreadN = 8;
  static constexpr int kWarpM = 32, kWarpN = 32;
  static constexpr int kM = 64, kN = 64, kThreads = 128;
  static constexpr int kDepth = 16, kStages = 4;
  static constexpr int kLineA = kDepth + 4, kLineB = kN + 8;
  static constexpr int kPieceA = kM * kLineA, kPieceB = kDepth * kLineB;
  static constexpr int kRun = 2;
  static constexpr Math kMath = kMath_;
};

// Row and column of a thread's sum (i, j) within the tile.
template <class Tile>
struct Place {
  int row, column;
  GPU_DEVICE Place() {
    const int t = static_cast<int>(threadIdx.x), warp = t / 32, lane = t % 32;
    constexpr int kAcross = Tile::kMath == Math::kFma ? 8 : 4;
    row = warp / Tile::kWarpsN * Tile::kWarpM + lane / kAcross;
    column = warp % Tile::kWarpsN * Tile::kWarpN + lane % kAcross * Tile::kRun;
  }
  GPU_DEVICE int Row(int i) const { return row + i * (Tile::kMath == Math::kFma ? 4 : 8); }
  GPU_DEVICE int Column(int j) const {
    constexpr int kApart = Tile::kMath == Math::kFma ? 32 : 8;
    return column + j / Tile::kRun * kApart + j % Tile::kRun;
  }
};

// Copies a piece of the left factor: `copy(row, kk, to)` starts the copy of one element, or of four
// from kk on, to its place.
template <class Tile, int kElements, class Copy>
GPU_DEVICE void LoadLeft(float* to, const Copy& copy) {
  constexpr int kParts = Tile::kDepth / kElements, kStep = Tile::kThreads / kParts;
  static_assert(Tile::kM % kStep == 0);
  const int t = static_cast<int>(threadIdx.x), kk = t % kParts * kElements, first = t / kParts;
  GPU_UNROLL
  for (int i = 0; i < Tile::kM / kStep; ++i) {
    const int row = first + i * kStep;
    copy(row, kk, to + row * Tile::kLineA + kk);
  }
}

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
GPU_DEVICE int StageOf(int k0) {
  return static_cast<int>(static_cast<uint32_t>(k0) / Tile::kDepth % Tile::kStages);
}

// Goes through k: `load(k0, stage)` starts the copies of a piece, `use(stage)` reads one that is
// there. Nobody may write to a stage before a barrier behind this.
template <class Tile, class Load, class Use>
GPU_DEVICE void ForPieces(int k, const Load& load, const Use& use) {
  GPU_UNROLL
  for (int stage = 0; stage + 1 < Tile::kStages; ++stage) {
    if (stage * Tile::kDepth < k) load(stage * Tile::kDepth, stage);
    CommitCopies();
  }
  GPU_NO_UNROLL
  for (int k0 = 0; k0 < k; k0 += Tile::kDepth) {
    WaitForCopies<Tile::kStages - 2>();
    __syncthreads();  // the piece is there, and nobody reads the one before it any more
    const int next = k0 + (Tile::kStages - 1) * Tile::kDepth;
    if (next < k) load(next, StageOf<Tile>(next));
    CommitCopies();
    use(StageOf<Tile>(k0));
  }
  WaitForCopies<0>();
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

// Reads or writes kCount neighbours, which are aligned to their bytes.
template <int kCount>
GPU_DEVICE void ReadSome(const float* at, float (&to)[kCount]) {
  if constexpr (kCount == 4) {
    const float4 four = *reinterpret_cast<const float4*>(at);
    to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
  } else {
    const float2 two = *reinterpret_cast<const float2*>(at);
    to[0] = two.x, to[1] = two.y;
  }
}
template <int kCount>
GPU_DEVICE void WriteSome(const float (&from)[kCount], float* at) {
  if constexpr (kCount == 4) {
    *reinterpret_cast<float4*>(at) = make_float4(from[0], from[1], from[2], from[3]);
  } else {
    *reinterpret_cast<float2*>(at) = make_float2(from[0], from[1]);
  }
}

// Adds the products of a piece. Rows of `a` are kLine elements long, a multiple of 4. As many
// elements of k are read at once as there are registers for.
template <class Tile, int kLine = Tile::kLineA>
GPU_DEVICE void MultiplyPiece(const float* a, const float* b, const Place<Tile>& place,
                              Sums<Tile>* sums) {
  constexpr int kAtOnce = Tile::kThreadN > 4 ? 2 : 4;
  GPU_NO_UNROLL  // unrolled, the large tile spills
      for (int kk = 0; kk < Tile::kDepth; kk += kAtOnce) {
    float right[kAtOnce][Tile::kThreadN / 4][4];
    GPU_UNROLL
    for (int e = 0; e < kAtOnce; ++e) {
      GPU_UNROLL
      for (int j = 0; j < Tile::kThreadN / 4; ++j)
        ReadSome(b + (kk + e) * Tile::kLineB + place.column + j * 32, right[e][j]);
    }
    GPU_UNROLL
    for (int i = 0; i < Tile::kThreadM; ++i) {
      float left[kAtOnce];
      ReadSome(a + place.Row(i) * kLine + kk, left);
      GPU_UNROLL
      for (int e = 0; e < kAtOnce; ++e) {
        GPU_UNROLL
        for (int j = 0; j < Tile::kThreadN; ++j)
          sums->at[i][j] = Fma(left[e], right[e][j / 4][j % 4], sums->at[i][j]);
      }
    }
  }
}

// The operands of mma.m16n8 that a lane has of a piece's elements kk and on: `left` by rows of 16,
// `right` by columns of 8.
struct LeftOperand {
  uint32_t at[4];
};
struct RightOperand {
  uint32_t at[2];
};
template <Math kMath>
GPU_DEVICE LeftOperand LeftOf(const float* a, int line, int lane) {
  LeftOperand operand;
  GPU_UNROLL
  for (int e = 0; e < 4; ++e) {  // e % 2: eight rows on; e / 2: the second half of k
    if constexpr (kMath == Math::kTf32) {
      operand.at[e] = ToTf32(a[(lane / 4 + e % 2 * 8) * line + lane % 4 + e / 2 * 4]);
    } else {
      float two[2];
      ReadSome(a + (lane / 4 + e % 2 * 8) * line + lane % 4 * 2 + e / 2 * 8, two);
      operand.at[e] = ToBf16(two[0], two[1]);
    }
  }
  return operand;
}
template <Math kMath>
GPU_DEVICE RightOperand RightOf(const float* b, int line, int lane) {
  RightOperand operand;
  GPU_UNROLL
  for (int e = 0; e < 2; ++e) {
    if constexpr (kMath == Math::kTf32) {
      operand.at[e] = ToTf32(b[(lane % 4 + e * 4) * line + lane / 4]);
    } else {
      const float* const at = b + (lane % 4 * 2 + e * 8) * line + lane / 4;
      operand.at[e] = ToBf16(at[0], at[line]);
    }
  }
  return operand;
}

// As MultiplyPiece.
template <class Tile>
GPU_DEVICE void MultiplyPieceOnTensorCores(const float* a, const float* b, Sums<Tile>* sums) {
  constexpr int kStep = Tile::kMath == Math::kTf32 ? 8 : 16;  // of k
  const int t = static_cast<int>(threadIdx.x), warp = t / 32, lane = t % 32;
  a += warp / Tile::kWarpsN * Tile::kWarpM * Tile::kLineA;
  b += warp % Tile::kWarpsN * Tile::kWarpN;
  GPU_UNROLL
  for (int kk = 0; kk < Tile::kDepth; kk += kStep) {
    LeftOperand left[Tile::kWarpM / 16];
    GPU_UNROLL
    for (int i = 0; i < Tile::kWarpM / 16; ++i)
      left[i] = LeftOf<Tile::kMath>(a + i * 16 * Tile::kLineA + kk, Tile::kLineA, lane);
    GPU_UNROLL
    for (int j = 0; j < Tile::kWarpN / 8; ++j) {
      const RightOperand right =
          RightOf<Tile::kMath>(b + kk * Tile::kLineB + j * 8, Tile::kLineB, lane);
      GPU_UNROLL
      for (int i = 0; i < Tile::kWarpM / 16; ++i) {
        float* const low = sums->at[2 * i] + 2 * j;
        float* const high = sums->at[2 * i + 1] + 2 * j;
        float c[4] = {low[0], low[1], high[0], high[1]};
        Mma<Tile::kMath == Math::kBf16>(left[i].at, right.at, c);
        low[0] = c[0], low[1] = c[1], high[0] = c[2], high[1] = c[3];
      }
    }
  }
}

// Left: LoadPiece(k0, to) starts the copies of a piece, in ascending order of k0, to
// to[row * kLineA + kk]; zeros beyond k and beyond the rows. OutAt(row) says where a row of the
// tile is in the output, or -1. `a` and `b` hold kStages pieces each.
template <class Tile, class Left>
GPU_DEVICE void MultiplyTile(Left& left, const FactorArgs& right, int k, int n0, int n, float* a,
                             float* b, Sums<Tile>* sums) {
  const Place<Tile> place;
  ClearSums<Tile>(sums);
  ForPieces<Tile>(
      k,
      [&](int k0, int stage) {
        left.LoadPiece(k0, a + stage * Tile::kPieceA);
        LoadFactor<Tile>(right, k0, k, n0, n, b + stage * Tile::kPieceB);
      },
      [&](int stage) {
        const float* const left_piece = a + stage * Tile::kPieceA;
        const float* const right_piece = b + stage * Tile::kPieceB;
        if constexpr (Tile::kMath == Math::kFma) {
          MultiplyPiece<Tile>(left_piece, right_piece, place, sums);
        } else {
          MultiplyPieceOnTensorCores<Tile>(left_piece, right_piece, sums);
        }
      });
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
    for (int j = 0; j < Tile::kThreadN; j += Tile::kRun) {
      const int column = n0 + place.Column(j);
      if (line < 0 || column >= n) continue;
      float value[Tile::kRun], more[Tile::kRun];
      GPU_UNROLL
      for (int e = 0; e < Tile::kRun; ++e) value[e] = sums.at[i][j + e] + 0.0f;
      const int64_t at = line + column;
      if (vectors) {
        if (epilogue.bias != nullptr) {
          ReadSome(epilogue.bias + column, more);
          GPU_UNROLL
          for (int e = 0; e < Tile::kRun; ++e) value[e] += more[e];
        }
        if (epilogue.residual != nullptr) {
          ReadSome(epilogue.residual + at, more);
          GPU_UNROLL
          for (int e = 0; e < Tile::kRun; ++e) value[e] += more[e];
        }
        GPU_UNROLL
        for (int e = 0; e < Tile::kRun; ++e) value[e] = ActivateCheaply(value[e], epilogue);
        WriteSome(value, c + at);
        continue;
      }
      GPU_UNROLL
      for (int e = 0; e < Tile::kRun; ++e) {
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
