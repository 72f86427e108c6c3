#include "kernels/cpu/gemm/gemm.h"

#include <algorithm>
#include <cstring>

namespace floe::kernels {
namespace {

// Below this many multiply-adds waking other threads costs more than it saves: ten microseconds.
constexpr int64_t kGemmSerialBelow = 500'000;

// Multiply-adds, and floats to pack, between two looks at the watch: some milliseconds on a slow
// core. Where there are fewer than kUnwatched in all, none is worth taking.
constexpr int64_t kSliceProducts = int64_t{1} << 26, kSliceFloats = int64_t{1} << 20;
constexpr int64_t kUnwatched = 4'000'000;

// Columns packed at once when B comes transposed, so that its cache lines are used whole.
constexpr int64_t kPackStep = 16;

// to[i * to_step + j] = from[j * from_step + i] for i and j in [0, 4).
void TransposeFour(const float* from, int64_t from_step, float* to, int64_t to_step) {
  using Four = float __attribute__((vector_size(16)));
  Four row[4];
  for (int j = 0; j < 4; ++j) std::memcpy(&row[j], from + j * from_step, sizeof(Four));
  const Four low = __builtin_shufflevector(row[0], row[1], 0, 4, 1, 5),
             high = __builtin_shufflevector(row[0], row[1], 2, 6, 3, 7),
             next_low = __builtin_shufflevector(row[2], row[3], 0, 4, 1, 5),
             next_high = __builtin_shufflevector(row[2], row[3], 2, 6, 3, 7);
  const Four column[4] = {__builtin_shufflevector(low, next_low, 0, 1, 4, 5),
                          __builtin_shufflevector(low, next_low, 2, 3, 6, 7),
                          __builtin_shufflevector(high, next_high, 0, 1, 4, 5),
                          __builtin_shufflevector(high, next_high, 2, 3, 6, 7)};
  for (int i = 0; i < 4; ++i) std::memcpy(to + i * to_step, &column[i], sizeof(Four));
}

void PackPanel(const float* b, int64_t k_stride, int64_t n_stride, int64_t k, int64_t columns,
               int64_t width, float* to) {
  if (n_stride == 1) {
    for (int64_t i = 0; i < k; ++i, to += width, b += k_stride) {
      std::memcpy(to, b, columns * sizeof(float));
      std::fill(to + columns, to + width, 0.0f);
    }
    return;
  }
  int64_t j = 0;
  for (; k_stride == 1 && j + 4 <= columns; j += 4) {
    const float* from = b + j * n_stride;
    int64_t i = 0;
    for (; i + 4 <= k; i += 4) TransposeFour(from + i, n_stride, to + i * width + j, width);
    for (; i < k; ++i) {
      for (int64_t c = 0; c < 4; ++c) to[i * width + j + c] = from[c * n_stride + i];
    }
  }
  for (int64_t begin = 0; begin < k; begin += kPackStep) {
    const int64_t end = std::min(k, begin + kPackStep);
    for (int64_t c = j; c < width; ++c) {
      for (int64_t i = begin; i < end; ++i) {
        to[i * width + c] = c < columns ? b[i * k_stride + c * n_stride] : 0.0f;
      }
    }
  }
}

// A part of C in slices. These are blocks of rows with all their panels, which is the order that
// the kernel itself keeps, or where one block is too much, some panels of one block.
void RunSlices(const GemmKernels& kernels, const GemmTask& task, int64_t row_begin, int64_t row_end,
               int64_t panel_begin, int64_t panel_end, RunWatch* watch) {
  const int64_t block = std::min(kernels.block_rows, row_end - row_begin);
  const int64_t of_panel = std::max<int64_t>(1, block * kernels.panel() * task.runs.k());
  const int64_t panels = std::clamp<int64_t>(kSliceProducts / of_panel, 1, panel_end - panel_begin);
  const bool whole = panels == panel_end - panel_begin;
  const int64_t rows =
      whole ? block * std::max<int64_t>(1, kSliceProducts / (of_panel * panels)) : block;
  for (int64_t row = row_begin; row < row_end; row += rows) {
    for (int64_t panel = panel_begin; panel < panel_end; panel += panels) {
      if (watch->Stopped()) return;
      kernels.run(task, row, std::min(row_end, row + rows), panel,
                  std::min(panel_end, panel + panels));
    }
  }
}

int64_t Pieces(int64_t whole, int64_t piece) { return (whole + piece - 1) / piece; }

// The size of pieces so that there are at most `most`, or one.
int64_t Piece(int64_t whole, int64_t most) { return Pieces(whole, std::max<int64_t>(most, 1)); }

}  // namespace

void PackGemm(const GemmKernels& kernels, const float* b, int64_t k_stride, int64_t n_stride,
              int64_t k, int64_t n, float* packed, RunWatch* watch) {
  const int64_t padded = kernels.PaddedColumns(n);
  int64_t unseen = 0;  // floats since the last look
  for (int64_t begin = 0; begin < n; begin += kernels.panel()) {
    unseen += k * kernels.panel();
    if (watch != nullptr && unseen >= kSliceFloats) {
      if (watch->Stopped()) return;
      unseen = 0;
    }
    PackPanel(b + begin * n_stride, k_stride, n_stride, k, std::min(kernels.panel(), n - begin),
              std::min(kernels.panel(), padded - begin), packed + begin * k);
  }
}

absl::Status RunGemm(const GemmKernels& kernels, const GemmTask& task, int64_t rows,
                     ThreadPool& pool) {
  const int64_t panels = kernels.panels(task.n), products = rows * task.n * task.runs.k();
  if (rows == 0 || panels == 0) return absl::OkStatus();
  const bool watched = products >= kUnwatched;
  if (products < kGemmSerialBelow || (pool.threads() == 1 && !watched)) {
    kernels.run(task, 0, rows, 0, panels);
    return absl::OkStatus();
  }
  RunWatch watch;
  if (pool.threads() == 1) {
    RunSlices(kernels, task, 0, rows, 0, panels, &watch);
    return watch.status();
  }
  // About four chunks a thread even out their speeds. The larger operand is split first, because a
  // chunk reads all of the other.
  const int64_t wanted = 4 * pool.threads();
  const int64_t tiles = (rows + kernels.tile_rows - 1) / kernels.tile_rows;
  int64_t chunk_tiles = tiles, chunk_panels = panels;
  if (rows >= task.n) {
    chunk_tiles = Piece(tiles, wanted);
    chunk_panels = Piece(panels, wanted / Pieces(tiles, chunk_tiles));
  } else {
    chunk_panels = Piece(panels, wanted);
    chunk_tiles = Piece(tiles, wanted / Pieces(panels, chunk_panels));
  }
  const int64_t row_chunks = Pieces(tiles, chunk_tiles),
                panel_chunks = Pieces(panels, chunk_panels);
  const int64_t chunk_rows = chunk_tiles * kernels.tile_rows;
  pool.ParallelFor(row_chunks * panel_chunks, [&](int64_t i) {
    const int64_t row = i / panel_chunks * chunk_rows, panel = i % panel_chunks * chunk_panels;
    const int64_t row_end = std::min(rows, row + chunk_rows),
                  panel_end = std::min(panels, panel + chunk_panels);
    if (watched) {
      RunSlices(kernels, task, row, row_end, panel, panel_end, &watch);
    } else {
      kernels.run(task, row, row_end, panel, panel_end);
    }
  });
  return watch.status();
}

}  // namespace floe::kernels
