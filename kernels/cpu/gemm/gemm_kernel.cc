#include <algorithm>
#include <type_traits>

#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/hwy_targets.h"
#include "kernels/cpu/isa.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm/gemm_kernel.cc"  // compiled once per ISA
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

#include "kernels/cpu/gemm/activation-inl.h"
#include "kernels/cpu/gemm/weights-inl.h"
#include "kernels/cpu/partial-inl.h"

// The loops over a tile's accumulators must vanish, so that these stay in registers.
#define FLOE_UNROLL _Pragma("GCC unroll 16")

HWY_BEFORE_NAMESPACE();
namespace floe::kernels::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// Rows of the largest tile: tile_rows x 2 accumulators, 2 vectors of B and one of A must fit the
// registers (32 in AVX-512 and NEON, 16 elsewhere). The row pointers must fit the general ones.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
constexpr int kTileRows = 8;
#elif HWY_TARGET == HWY_AVX2
constexpr int kTileRows = 6;
#else
constexpr int kTileRows = 4;
#endif

// Blocks for the caches: kBlockRows x kBlockK of A (144 KiB) stay in L2 while all panels pass.
// kBlockK rows of a panel (24 to 48 KiB) stay near L1 while the block's tiles pass.
constexpr int64_t kBlockRows = 96;
constexpr int64_t kBlockK = 384;
static_assert(kBlockRows % kTileRows == 0);

// One block of K: elements [k_begin, k_end) of runs [run_begin, run_end).
struct KBlock {
  int64_t run_begin, run_end, k_begin, k_end;
  bool first, last;

  int64_t k() const { return (run_end - run_begin) * (k_end - k_begin); }
};

// Walks K in blocks of about kBlockK, which are whole runs or parts of one run.
class KBlocks {
 public:
  KBlocks(const GemmRuns& runs, bool whole) : runs_(runs) {
    if (whole || runs.k() <= kBlockK) {
      per_block_ = runs.count;
      part_ = runs.length;
    } else if (runs.length <= kBlockK) {
      per_block_ = kBlockK / runs.length;
      part_ = runs.length;
    } else {
      const int64_t parts = (runs.length + kBlockK - 1) / kBlockK;
      per_block_ = 1;
      part_ = (runs.length + parts - 1) / parts;
    }
    block_ = {0, HWY_MIN(per_block_, runs.count), 0, HWY_MIN(part_, runs.length), true, false};
    block_.last = block_.run_end == runs_.count && block_.k_end == runs_.length;
  }
  const KBlock& block() const { return block_; }
  // False after the last block.
  bool Next() {
    if (block_.last) return false;
    block_.first = false;
    if (block_.k_end < runs_.length) {
      block_.k_begin = block_.k_end;
    } else {
      block_.k_begin = 0;
      block_.run_begin = block_.run_end;
      block_.run_end = HWY_MIN(block_.run_end + per_block_, runs_.count);
    }
    block_.k_end = HWY_MIN(block_.k_begin + part_, runs_.length);
    block_.last = block_.run_end == runs_.count && block_.k_end == runs_.length;
    return true;
  }

 private:
  const GemmRuns& runs_;
  int64_t per_block_, part_;
  KBlock block_;
};

// Below, B is what points to packed numbers: const float*, const BFloat16* or DifferenceOf.
template <class B>
inline constexpr int64_t kNumbersOfLine = 64 / sizeof(float);
template <>
inline constexpr int64_t kNumbersOfLine<const BFloat16*> = 64 / sizeof(BFloat16);

// What a tile asks into L2 for a later one, `step` numbers more with each row of B. A processor's
// own prefetching neither starts early enough for memory's latency nor goes on into the next page.
template <class B>
struct Ahead {
  B from;
  int64_t step;
};

// Where one tile works: kPanels panels of kVectors vectors from b on, `panel_step` apart.
template <class B>
struct TilePlace {
  const float* const* rows;
  B b;                 // row 0 of the K block
  int64_t panel_step;  // numbers from one packed panel to the next
  Ahead<B> ahead;
  float* c;
  int64_t columns;  // of C that are left from `c` on; may exceed the tile
  const float* bias;
  const float* residual;
};

constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(D()));

// A tile's partial sums from the previous K block. Columns that C does not have are 0.
template <int kRows, int kWide>
HWY_INLINE void LoadSums(const float* c, int64_t ldc, int64_t columns, V (&sum)[kRows][kWide]) {
  const D d;
  FLOE_UNROLL for (int i = 0; i < kRows; ++i) {
    FLOE_UNROLL for (int j = 0; j < kWide; ++j) {
      const float* from = c + i * ldc + j * kLanes;
      const int64_t left = columns - j * kLanes;
      sum[i][j] = left >= kLanes ? hn::LoadU(d, from)
                  : left > 0     ? LoadPartial(d, from, left)
                                 : hn::Zero(d);
    }
  }
}

template <int kRows, int kWide>
HWY_INLINE void StoreSums(const V (&sum)[kRows][kWide], float* c, int64_t ldc, int64_t columns) {
  const D d;
  FLOE_UNROLL for (int j = 0; j < kWide; ++j) {
    const int64_t left = columns - j * kLanes;
    float* to = c + j * kLanes;
    if (left >= kLanes) {
      FLOE_UNROLL for (int i = 0; i < kRows; ++i) hn::StoreU(sum[i][j], d, to + i * ldc);
    } else if (left > 0) {
      FLOE_UNROLL for (int i = 0; i < kRows; ++i) StorePartial(d, sum[i][j], to + i * ldc, left);
    }
  }
}

// sum = f(sum) for all of them.
template <int kRows, int kWide, class F>
HWY_INLINE void ForSums(V (&sum)[kRows][kWide], const F& f) {
  FLOE_UNROLL for (int i = 0; i < kRows; ++i) {
    FLOE_UNROLL for (int j = 0; j < kWide; ++j) sum[i][j] = f(sum[i][j]);
  }
}

// Adds the products of one run of `length` elements of K; returns the row of B behind them.
template <class B, int kRows, int kPanels, int kVectors>
HWY_INLINE B AddRun(const float* const (&a)[kRows], B b, int64_t panel_step, int64_t length,
                    Ahead<B>& ahead, V (&sum)[kRows][kPanels * kVectors]) {
  const D d;
  constexpr int64_t kRow = kVectors * kLanes;
#pragma GCC unroll 4
  for (int64_t k = 0; k < length; ++k) {
    // With fewer rows nothing is left to do meanwhile, and with one vector loads are the limit.
    if constexpr (kRows > 4 && kVectors > 1) {
      FLOE_UNROLL for (int64_t i = 0; i < kRow; i += kNumbersOfLine<B>)
          PrefetchWeights(ahead.from + i);
      ahead.from += ahead.step;
    }
    const auto weights = [&](int j) HWY_ATTR {
      return LoadWeights(d, b + j / kVectors * panel_step + j % kVectors * kLanes);
    };
    if constexpr (kRows <= 2) {  // few sums a vector of B: it is used as it comes
      V va[kRows];
      FLOE_UNROLL for (int i = 0; i < kRows; ++i) va[i] = hn::Set(d, a[i][k]);
      FLOE_UNROLL for (int j = 0; j < kPanels * kVectors; ++j) {
        const V vb = weights(j);
        FLOE_UNROLL for (int i = 0; i < kRows; ++i) sum[i][j] = hn::MulAdd(va[i], vb, sum[i][j]);
      }
    } else {
      V vb[kPanels * kVectors];
      FLOE_UNROLL for (int j = 0; j < kPanels * kVectors; ++j) vb[j] = weights(j);
      FLOE_UNROLL for (int i = 0; i < kRows; ++i) {
        const V va = hn::Set(d, a[i][k]);
        FLOE_UNROLL for (int j = 0; j < kPanels * kVectors; ++j) {
          sum[i][j] = hn::MulAdd(va, vb[j], sum[i][j]);
        }
      }
    }
    b += kVectors * kLanes;
  }
  return b;
}

// Bias, residual, and the activation that is cheap enough to be done in registers.
template <class B, int kRows, int kWide>
HWY_INLINE void FinishSums(const GemmTask& task, const TilePlace<B>& at, V (&sum)[kRows][kWide]) {
  const D d;
  if (at.bias != nullptr) {
    FLOE_UNROLL for (int j = 0; j < kWide; ++j) {
      if (j * kLanes < at.columns) {
        const V bias = hn::LoadU(d, at.bias + j * kLanes);
        FLOE_UNROLL for (int i = 0; i < kRows; ++i) sum[i][j] = hn::Add(sum[i][j], bias);
      }
    }
  }
  if (at.residual != nullptr) {
    V residual[kRows][kWide];
    LoadSums(at.residual, task.ldc, at.columns, residual);
    FLOE_UNROLL for (int i = 0; i < kRows; ++i) {
      FLOE_UNROLL for (int j = 0; j < kWide; ++j) sum[i][j] = hn::Add(sum[i][j], residual[i][j]);
    }
  }
  ActivateCheaply(d, task.activation, task.alpha, [&](const auto& f) HWY_ATTR { ForSums(sum, f); });
}

// Goes through the runs of K: where each begins, in floats from the beginning of a row.
class RunWalk {
 public:
  RunWalk(const GemmRuns& runs, int64_t run) : runs_(runs) {
    if (run == 0) return;
    group_ = run / runs.per_group;
    in_group_ = run % runs.per_group;
    plane_ = group_ / runs.per_plane;
    group_ %= runs.per_plane;
  }
  HWY_INLINE int64_t Next() {
    const int64_t offset =
        plane_ * runs_.plane_stride + group_ * runs_.group_stride + in_group_ * runs_.stride;
    if (++in_group_ == runs_.per_group) {
      in_group_ = 0;
      if (++group_ == runs_.per_plane) {
        group_ = 0;
        ++plane_;
      }
    }
    return offset;
  }

 private:
  const GemmRuns& runs_;
  int64_t plane_ = 0, group_ = 0, in_group_ = 0;
};

// The sums of one tile over one K block, continued from C unless first, finished when last.
template <class B, int kRows, int kPanels, int kVectors>
void Tile(const GemmTask& task, const KBlock& block, const TilePlace<B>& at) {
  constexpr int kWide = kPanels * kVectors;
  const D d;
  V sum[kRows][kWide];
  if (block.first) {
    FLOE_UNROLL for (int i = 0; i < kRows; ++i) {
      // The lines come while the sums are made: else stores wait for memory.
      FLOE_UNROLL for (int j = 0; j < kWide; j += kNumbersOfLine<const float*> / kLanes)
          __builtin_prefetch(at.c + i * task.ldc + j * kLanes, 1);
      FLOE_UNROLL for (int j = 0; j < kWide; ++j) sum[i][j] = hn::Zero(d);
    }
  } else {
    LoadSums(at.c, task.ldc, at.columns, sum);
  }

  const GemmRuns& runs = task.runs;
  B b = at.b;
  Ahead<B> ahead = at.ahead;
  RunWalk walk(runs, block.run_begin);
  for (int64_t run = block.run_begin; run < block.run_end; ++run) {
    const int64_t offset = walk.Next() + block.k_begin;
    const float* a[kRows];
    FLOE_UNROLL for (int i = 0; i < kRows; ++i) a[i] = at.rows[i] + offset;
    b = AddRun<B, kRows, kPanels, kVectors>(a, b, at.panel_step, block.k_end - block.k_begin, ahead,
                                            sum);
  }

  if (block.last) FinishSums(task, at, sum);
  StoreSums(sum, at.c, task.ldc, at.columns);
  if (block.last && !IsCheap(task.activation)) {
    ActivateInPlace(
        task.activation, task.alpha,
        {at.c, kRows, task.ldc, static_cast<size_t>(HWY_MIN(at.columns, kWide * kLanes))});
  }
}

template <class B>
using TileFunction = void (*)(const GemmTask&, const KBlock&, const TilePlace<B>&);

// By rows of the tile, then by vectors of the panel.
template <class B>
constexpr TileFunction<B> kTiles[][2] = {
    {nullptr, nullptr},
    {Tile<B, 1, 1, 1>, Tile<B, 1, 1, 2>},
    {Tile<B, 2, 1, 1>, Tile<B, 2, 1, 2>},
    {Tile<B, 3, 1, 1>, Tile<B, 3, 1, 2>},
    {Tile<B, 4, 1, 1>, Tile<B, 4, 1, 2>},
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON || HWY_TARGET == HWY_AVX2
    {Tile<B, 5, 1, 1>, Tile<B, 5, 1, 2>},
    {Tile<B, 6, 1, 1>, Tile<B, 6, 1, 2>},
#endif
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
    {Tile<B, 7, 1, 1>, Tile<B, 7, 1, 2>},
    {Tile<B, 8, 1, 1>, Tile<B, 8, 1, 2>},
#endif
};
static_assert(sizeof(kTiles<const float*>) / sizeof(kTiles<const float*>[0]) == kTileRows + 1);

// One or two rows have too few sums in flight to hide the latency of a multiply-add: several panels
// at once.
template <class B>
constexpr TileFunction<B> kOneRow[] = {nullptr, Tile<B, 1, 1, 2>, Tile<B, 1, 2, 2>,
                                       Tile<B, 1, 3, 2>, Tile<B, 1, 4, 2>};
template <class B>
constexpr TileFunction<B> kTwoRows[] = {nullptr, Tile<B, 2, 1, 2>, Tile<B, 2, 2, 2>};
constexpr int64_t kPanelsOfOneRow = 4, kPanelsOfTwoRows = 2;

template <class B>
B PackedOf(const GemmTask& task) {
  if constexpr (std::is_same_v<B, const BFloat16*>) {
    return task.b_bf16;
  } else if constexpr (std::is_same_v<B, DifferenceOf>) {
    return {task.b, task.b_minus - task.b};
  } else {
    return task.b;
  }
}

// What a tile asks for ahead, counted from its first number.
struct Prefetch {
  int64_t offset, step;
};

constexpr int64_t kPanel = 2 * kLanes;  // columns

// All panels of one tile of rows in one K block.
template <class B>
void RowTile(const GemmTask& task, const KBlock& block, const float* const* rows, int count,
             float* c, int64_t panel_begin, int64_t panel_end, const Prefetch& prefetch) {
  const int64_t k = task.runs.k();
  const int64_t k_done = block.run_begin * task.runs.length + block.k_begin;
  const int64_t whole_end =
      HWY_MIN(panel_end, (task.n + kLanes - 1) / kPanel);  // panels of two vectors
  int64_t panel = panel_begin;
  const auto place = [&](int64_t width) {
    const int64_t column = panel * kPanel;
    const B b = PackedOf<B>(task) + (column * k + k_done * width);
    return TilePlace<B>{rows,
                        b,
                        kPanel * k,
                        {b + prefetch.offset, prefetch.step},
                        c + column,
                        task.n - column,
                        task.bias == nullptr ? nullptr : task.bias + column,
                        task.residual == nullptr ? nullptr : task.residual + (c - task.c) + column};
  };
  while (panel < whole_end) {
    int64_t together = 1;
    TileFunction<B> tile = kTiles<B>[count][1];
    if (count == 1) {
      together = HWY_MIN(whole_end - panel, kPanelsOfOneRow);
      tile = kOneRow<B>[together];
    } else if (count == 2) {
      together = HWY_MIN(whole_end - panel, kPanelsOfTwoRows);
      tile = kTwoRows<B>[together];
    }
    tile(task, block, place(kPanel));
    panel += together;
  }
  if (panel < panel_end) kTiles<B>[count][0](task, block, place(kLanes));
}

// One block of rows against one panel range; `rows` are their addresses.
template <class B>
void RowBlock(const GemmTask& task, const KBlock& block, const float* const* rows, int64_t count,
              float* c, int64_t panel_begin, int64_t panel_end) {
  if (count <= kTileRows) {
    constexpr int64_t kBytesAhead = 32 << 10;  // about a panel
    RowTile<B>(task, block, rows, static_cast<int>(count), c, panel_begin, panel_end,
               {kBytesAhead / 64 * kNumbersOfLine<B>, kPanel});
    return;
  }
  // Even tiles: 4 + 4 beats 6 + 2. Each asks for its part of the next panel.
  const int64_t tiles = (count + kTileRows - 1) / kTileRows;
  const int64_t least = count / tiles, larger = count % tiles;
  const int64_t part = block.k() / tiles, step = (kPanel + tiles - 1) / tiles;
  for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
    int64_t row = 0;
    for (int64_t i = 0; i < tiles; ++i) {
      const int64_t tile_rows = least + (i < larger ? 1 : 0);
      RowTile<B>(task, block, rows + row, static_cast<int>(tile_rows), c + row * task.ldc, panel,
                 panel + 1, {kPanel * (task.runs.k() + i * part), step});
      row += tile_rows;
    }
  }
}

// p[0, n) += what[0, n).
void AddTo(const float* what, float* p, int64_t n) {
  const D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(hn::Add(hn::LoadU(d, p + i), hn::LoadU(d, what + i)), d, p + i);
  for (; i < n; ++i) p[i] += what[i];
}

void FinishRows(const Epilogue& epilogue, const float* bias, const float* residual, float* p,
                int64_t rows, int64_t n, int64_t ld) {
  for (int64_t r = 0; r < rows; ++r) {
    if (bias != nullptr) AddTo(bias, p + r * ld, n);
    if (residual != nullptr) AddTo(residual + r * ld, p + r * ld, n);
  }
  ActivateInPlace(epilogue.activation, epilogue.alpha, {p, rows, ld, static_cast<size_t>(n)});
}

// kRows rows of a narrow product; `rows` are their addresses.
template <int kRows, int kColumns>
void NarrowTile(const GemmTask& task, const float* const* rows, float* c) {
  const D d;
  const int64_t k = task.runs.k(), length = task.runs.length;
  V sum[kRows][kColumns];
  FLOE_UNROLL for (int i = 0; i < kRows; ++i) {
    FLOE_UNROLL for (int j = 0; j < kColumns; ++j) sum[i][j] = hn::Zero(d);
  }
  const float* b = task.b;
  RunWalk walk(task.runs, 0);
  for (int64_t run = 0; run < task.runs.count; ++run, b += length) {
    const int64_t offset = walk.Next();
    const auto add = [&](int64_t at, const auto& load) HWY_ATTR {
      V weights[kColumns];
      FLOE_UNROLL for (int j = 0; j < kColumns; ++j) weights[j] = load(b + j * k + at);
      FLOE_UNROLL for (int i = 0; i < kRows; ++i) {
        const V a = load(rows[i] + offset + at);
        FLOE_UNROLL for (int j = 0; j < kColumns; ++j) {
          sum[i][j] = hn::MulAdd(a, weights[j], sum[i][j]);
        }
      }
    };
    int64_t at = 0;
    for (; at + kLanes <= length; at += kLanes)
      add(at, [&](const float* p) HWY_ATTR { return hn::LoadU(d, p); });
    if (at < length)
      add(at, [&](const float* p) HWY_ATTR { return LoadPartial(d, p, length - at); });
  }
  FLOE_UNROLL for (int i = 0; i < kRows; ++i) {
    FLOE_UNROLL for (int j = 0; j < kColumns; ++j) {
      c[i * task.ldc + j] = hn::GetLane(hn::SumOfLanes(d, sum[i][j]));
    }
  }
}

// Rows at once: their sums, the weights and a vector of A must fit the registers. One column has
// few sums to hide the latency of a multiply-add.
constexpr int NarrowTileRows(int columns) {
  constexpr int kSums = kTileRows == 8 ? 20 : 10;
  return columns == 1 ? 8 : HWY_MIN(4, HWY_MAX(1, kSums / columns));
}

template <int kColumns>
void NarrowRows(const GemmTask& task, const float* const* rows, int64_t count, float* c) {
  constexpr int kRows = NarrowTileRows(kColumns);
  int64_t i = 0;
  for (; i + kRows <= count; i += kRows)
    NarrowTile<kRows, kColumns>(task, rows + i, c + i * task.ldc);
  for (; i < count; ++i) NarrowTile<1, kColumns>(task, rows + i, c + i * task.ldc);
}

void NarrowBlock(const GemmTask& task, const float* const* rows, int64_t count, float* c) {
  constexpr void (*kByColumns[])(const GemmTask&, const float* const*, int64_t, float*) = {
      nullptr,       NarrowRows<1>, NarrowRows<2>, NarrowRows<3>, NarrowRows<4>, NarrowRows<5>,
      NarrowRows<6>, NarrowRows<7>, NarrowRows<8>, NarrowRows<9>, NarrowRows<10>};
  static_assert(sizeof(kByColumns) / sizeof(kByColumns[0]) == kMostNarrowColumns + 1);
  kByColumns[task.n](task, rows, count, c);
  Epilogue epilogue;
  epilogue.activation = task.activation;
  epilogue.alpha = task.alpha;
  FinishRows(epilogue, task.bias, task.residual == nullptr ? nullptr : task.residual + (c - task.c),
             c, count, task.n, task.ldc);
}

template <class B>
void RunBlocks(const GemmTask& task, int64_t row_begin, int64_t row_end, int64_t panel_begin,
               int64_t panel_end) {
  const float* rows[kBlockRows];
  const GemmRows& a = task.a;
  int64_t line = 0, in_line = row_begin;
  if (row_begin >= a.per_line) {
    line = row_begin / a.per_line;
    in_line = row_begin % a.per_line;
  }
  for (int64_t begin = row_begin; begin < row_end; begin += kBlockRows) {
    const int64_t count = HWY_MIN(kBlockRows, row_end - begin);
    for (int64_t i = 0; i < count;) {
      const float* row = a.base + line * a.line_stride + in_line * a.stride;
      const int64_t of_line = HWY_MIN(count - i, a.per_line - in_line);
      for (const int64_t end = i + of_line; i < end; ++i, row += a.stride) rows[i] = row;
      in_line += of_line;
      if (in_line == a.per_line) {
        in_line = 0;
        ++line;
      }
    }
    if constexpr (std::is_same_v<B, const float*>) {
      if (task.narrow) {
        NarrowBlock(task, rows, count, task.c + begin * task.ldc);
        continue;
      }
    }
    // A single tile reuses nothing of B, so K need not be cut.
    KBlocks blocks(task.runs, row_end - row_begin <= kTileRows);
    do {
      RowBlock<B>(task, blocks.block(), rows, count, task.c + begin * task.ldc, panel_begin,
                  panel_end);
    } while (blocks.Next());
  }
}

void RunGemmBlock(const GemmTask& task, int64_t row_begin, int64_t row_end, int64_t panel_begin,
                  int64_t panel_end) {
  const auto run = task.b_bf16 != nullptr    ? RunBlocks<const BFloat16*>
                   : task.b_minus != nullptr ? RunBlocks<DifferenceOf>
                                             : RunBlocks<const float*>;
  run(task, row_begin, row_end, panel_begin, panel_end);
}

int64_t VectorLanes() { return static_cast<int64_t>(hn::Lanes(D())); }
int64_t TileRows() { return kTileRows; }
int64_t BlockRows() { return kBlockRows; }

}  // namespace
}  // namespace floe::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace floe::kernels {

HWY_EXPORT(RunGemmBlock);
HWY_EXPORT(FinishRows);
HWY_EXPORT(VectorLanes);
HWY_EXPORT(TileRows);
HWY_EXPORT(BlockRows);

GemmKernels PickGemm() {
  ChooseIsa();
  GemmKernels kernels;
  kernels.lanes = HWY_DYNAMIC_DISPATCH(VectorLanes)();
  kernels.tile_rows = HWY_DYNAMIC_DISPATCH(TileRows)();
  kernels.block_rows = HWY_DYNAMIC_DISPATCH(BlockRows)();
  kernels.run = &HWY_DYNAMIC_DISPATCH(RunGemmBlock);
  kernels.finish = &HWY_DYNAMIC_DISPATCH(FinishRows);
  return kernels;
}

}  // namespace floe::kernels
#endif
