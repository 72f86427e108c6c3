// The packed matrix multiplication behind MatMul and the convolutions:
//   C[m][n] = activation(residual[m][n] + bias[n] + sum over k of A(m, k) * B[k][n])
// B is packed once into column panels; A is read in place. One output element is summed in the
// order of k with one multiply-add each, whatever the number of rows, the tile it falls into, the
// blocking and the threads. Its bits depend on its row of A, on B and on the instruction set only.
// B may be kept in bfloat16: each number is widened when it is read, which changes no bits. Or it
// is the difference of two packed matrices, rounded once when it is read.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "base/thread_pool.h"
#include "kernels/cpu/run_watch.h"
#include "model/epilogue.h"
#include "model/half.h"

namespace floe::kernels {

// Where row m of A begins: lines of `per_line` rows. A matrix is one line; an image of NHWC pixels
// has one line per output row, whose rows overlap when the stride is below the kernel size. Strides
// in floats.
struct GemmRows {
  const float* base = nullptr;
  int64_t per_line = INT64_MAX;
  int64_t stride = 0;
  int64_t line_stride = 0;
};

// The K elements of one row: `count` runs of `length` contiguous floats, which lie `stride` apart
// within a group, groups `group_stride` within a plane, and planes `plane_stride`.
struct GemmRuns {
  int64_t length = 0;
  int64_t count = 1;
  int64_t per_group = 1;
  int64_t stride = 0;
  int64_t group_stride = 0;
  int64_t per_plane = INT64_MAX;  // groups
  int64_t plane_stride = 0;

  int64_t k() const { return length * count; }
};

struct GemmTask {
  GemmRows a;
  GemmRuns runs;
  const float* b = nullptr;          // packed, aligned
  const BFloat16* b_bf16 = nullptr;  // the same in bfloat16, in place of b
  const float* b_minus = nullptr;    // packed as b and subtracted from it: (b - b_minus); or null
  bool narrow = false;               // b holds n columns of k numbers, one behind the other
  const float* bias = nullptr;       // PaddedColumns(n) readable floats, or null
  const float* residual = nullptr;   // laid out as C, and not C; or null
  int64_t n = 0;                     // columns of C
  float* c = nullptr;
  int64_t ldc = 0;  // floats from one row of C to the next
  Activation activation = Activation::kNone;
  float alpha = 0;
};

inline constexpr int64_t kMostNarrowColumns = 10;

// The functions of one instruction set. Never allocate, never fail, any thread.
struct GemmKernels {
  int64_t lanes;       // floats of a vector
  int64_t tile_rows;   // rows of the largest register tile
  int64_t block_rows;  // rows that share the loads of B
  // Rows [row_begin, row_end) of panels [panel_begin, panel_end).
  void (*run)(const GemmTask& task, int64_t row_begin, int64_t row_end, int64_t panel_begin,
              int64_t panel_end);
  // p[r][0, n) = activation(p[r] + bias + residual[r]) for `rows` rows `ld` floats apart; bias and
  // residual may be null. For other backends.
  void (*finish)(const Epilogue& epilogue, const float* bias, const float* residual, float* p,
                 int64_t rows, int64_t n, int64_t ld);

  int64_t panel() const { return 2 * lanes; }  // columns
  int64_t panels(int64_t n) const { return (n + panel() - 1) / panel(); }
  int64_t PaddedColumns(int64_t n) const { return (n + lanes - 1) / lanes * lanes; }
  // Whether a product gains by being narrow. Columns would leave most lanes of a vector idle: the
  // lanes hold neighbours in k, each sums its own in their order, and they are added at last.
  bool Narrow(int64_t k, int64_t n) const {
    return n <= kMostNarrowColumns && k >= (4 * n <= lanes ? 4 * lanes : 32 * n);
  }
  // Floats of a packed K x N matrix. The last panel is one vector wide when that holds its columns.
  int64_t PackedFloats(int64_t k, int64_t n) const { return k * PaddedColumns(n); }
};

// For this CPU; call once, when a kernel is made.
GemmKernels PickGemm();

// Packs B, whose element (k, n) is b[k * k_stride + n * n_stride]; columns beyond n become 0.
// `watch`, which may be null, is looked at now and then; stopped, it leaves the rest unwritten.
void PackGemm(const GemmKernels& kernels, const float* b, int64_t k_stride, int64_t n_stride,
              int64_t k, int64_t n, float* packed, RunWatch* watch = nullptr);

// All rows, split over the pool's threads when there is enough to do. CANCELLED or
// DEADLINE_EXCEEDED, some milliseconds after that is due, with parts of C unwritten.
absl::Status RunGemm(const GemmKernels& kernels, const GemmTask& task, int64_t rows,
                     ThreadPool& pool);

}  // namespace floe::kernels
