#include "kernels/cpu/gemm.h"

#include <algorithm>
#include <cstring>

namespace floe::kernels {
namespace {

// Below this many multiply-adds waking other threads costs more than it saves.
constexpr int64_t kSerialBelow = 50'000;

// Columns packed at once when B comes transposed, so that its cache lines are used whole.
constexpr int64_t kPackStep = 16;

void PackPanel(const float* b, int64_t k_stride, int64_t n_stride, int64_t k, int64_t columns,
               int64_t width, float* to) {
  if (n_stride == 1) {
    for (int64_t i = 0; i < k; ++i, to += width, b += k_stride) {
      std::memcpy(to, b, columns * sizeof(float));
      std::fill(to + columns, to + width, 0.0f);
    }
    return;
  }
  for (int64_t begin = 0; begin < k; begin += kPackStep) {
    const int64_t end = std::min(k, begin + kPackStep);
    for (int64_t j = 0; j < width; ++j) {
      for (int64_t i = begin; i < end; ++i) {
        to[i * width + j] = j < columns ? b[i * k_stride + j * n_stride] : 0.0f;
      }
    }
  }
}

}  // namespace

void PackGemm(const GemmKernels& kernels, const float* b, int64_t k_stride, int64_t n_stride,
              int64_t k, int64_t n, float* packed) {
  const int64_t padded = kernels.PaddedColumns(n);
  for (int64_t begin = 0; begin < n; begin += kernels.panel()) {
    PackPanel(b + begin * n_stride, k_stride, n_stride, k, std::min(kernels.panel(), n - begin),
              std::min(kernels.panel(), padded - begin), packed + begin * k);
  }
}

void RunGemm(const GemmKernels& kernels, const GemmTask& task, int64_t rows, ThreadPool& pool) {
  const int64_t panels = kernels.panels(task.n);
  if (rows == 0 || panels == 0) return;
  if (pool.threads() == 1 || rows * task.n * task.runs.k() < kSerialBelow) {
    kernels.run(task, 0, rows, 0, panels);
    return;
  }
  // About four chunks a thread even out their speeds; rows are split first, because a chunk reads
  // all its panels.
  const int64_t wanted = 4 * pool.threads();
  const int64_t tiles = (rows + kernels.tile_rows - 1) / kernels.tile_rows;
  const int64_t chunk_rows = (tiles + wanted - 1) / wanted * kernels.tile_rows;
  const int64_t row_chunks = (rows + chunk_rows - 1) / chunk_rows;
  const int64_t panel_split = std::clamp<int64_t>(wanted / row_chunks, 1, panels);
  const int64_t chunk_panels = (panels + panel_split - 1) / panel_split;
  const int64_t panel_chunks = (panels + chunk_panels - 1) / chunk_panels;
  pool.ParallelFor(row_chunks * panel_chunks, [&](int64_t i) {
    const int64_t row = i / panel_chunks * chunk_rows, panel = i % panel_chunks * chunk_panels;
    kernels.run(task, row, std::min(rows, row + chunk_rows), panel,
                std::min(panels, panel + chunk_panels));
  });
}

}  // namespace floe::kernels
