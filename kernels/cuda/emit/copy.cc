#include "kernels/cuda/emit/copy.h"

#include <algorithm>
#include <utility>

#include "kernels/cuda/move_args.h"

namespace floe::cuda {
namespace {

using kernels::Grid;

int64_t Misalignment(const void* address) {
  return static_cast<int64_t>(reinterpret_cast<uintptr_t>(address) % 16);
}

// Makes units of neighbouring elements; returns their bytes.
int64_t WidenUnits(Grid* g, int64_t bytes, const void* from, const void* to) {
  if (g->from.back() != 1 || g->to.back() != 1) return bytes;
  int64_t all = (Misalignment(from) | Misalignment(to) | g->dims.back() * bytes | 16);
  for (size_t i = 0; i + 1 < g->dims.size(); ++i)
    all |= std::abs(g->from[i] * bytes) | std::abs(g->to[i] * bytes);
  const int64_t unit = all & -all;  // the largest power of two that divides all of them
  if (unit <= bytes) return bytes;
  const int64_t factor = unit / bytes;
  g->dims.back() /= factor;
  for (size_t i = 0; i + 1 < g->dims.size(); ++i) {
    g->from[i] /= factor;
    g->to[i] /= factor;
  }
  return unit;
}

// Where the last dim is not dense in `from` but another one is: through tiles in shared memory.
bool EmitTransposed(const Grid& g, const void* from, void* to, std::vector<Launch>* launches) {
  constexpr int64_t kFew = 8;  // shorter dims leave most of a tile empty
  const size_t last = g.dims.size() - 1;
  if (g.from[last] == 1 || g.to[last] != 1) return false;
  size_t row = 0;
  while (row < last && g.from[row] != 1) ++row;
  if (row == last || g.dims[row] < kFew || g.dims[last] < kFew) return false;
  TransposeArgs args{};
  args.in = static_cast<const uint32_t*>(from);
  args.out = static_cast<uint32_t*>(to);
  int64_t batches = 1;
  for (size_t i = 0; i < last; ++i) {
    if (i == row) continue;
    args.dim[args.dims] = DividerOf(g.dims[i]);
    args.in_step[args.dims] = g.from[i];
    args.out_step[args.dims] = g.to[i];
    ++args.dims;
    batches *= g.dims[i];
  }
  constexpr int64_t kMostBlocks = 65535, kMostSize = INT32_MAX;
  if (batches > kMostBlocks || g.dims[row] > kMostBlocks * kTransposeSide ||
      g.dims[last] > kMostSize)
    return false;
  args.rows = static_cast<int32_t>(g.dims[row]);
  args.columns = static_cast<int32_t>(g.dims[last]);
  args.in_stride = g.from[last];
  args.out_stride = g.to[row];
  const Dim3 blocks{Blocks(args.columns, kTransposeSide), Blocks(args.rows, kTransposeSide),
                    static_cast<uint32_t>(batches)};
  launches->push_back(Launch::Of(KernelId::transpose, blocks, args));
  return true;
}

}  // namespace

void EmitCopy(Grid grid, int64_t element_bytes, const void* from, void* to,
              std::vector<Launch>* launches) {
  if (from == to) return;  // the plan has placed one in the other
  if (std::find(grid.dims.begin(), grid.dims.end(), 0) != grid.dims.end()) return;
  grid = kernels::JoinedDims(grid);
  const int64_t bytes = WidenUnits(&grid, element_bytes, from, to);
  if (bytes == 4 && EmitTransposed(grid, from, to, launches)) return;
  CopyArgs args{};
  args.in = from;
  args.out = to;
  args.unit_bytes = static_cast<int32_t>(bytes);
  args.dims = static_cast<int32_t>(grid.dims.size());
  args.units = 1;
  for (size_t d = 0; d < grid.dims.size(); ++d) {
    args.dim[d] = DividerOf(grid.dims[d]);
    args.in_stride[d] = grid.from[d];
    args.out_stride[d] = grid.to[d];
    args.units *= grid.dims[d];
  }
  launches->push_back(
      Launch::Of(KernelId::copy, {Blocks(args.units, kMoveThreads * kMoveEach)}, args));
}

void EmitBytes(const void* from, void* to, int64_t bytes, std::vector<Launch>* launches) {
  Grid grid;
  grid.Add(bytes, 1, 1);
  EmitCopy(std::move(grid), 1, from, to, launches);
}

void EmitFill(const void* value, int64_t element_bytes, void* to, int64_t count,
              std::vector<Launch>* launches) {
  if (count == 0) return;
  FillUnitsArgs args{};
  args.out = to;
  args.from = value;
  args.units = count;
  args.unit_bytes = static_cast<int32_t>(element_bytes);
  launches->push_back(
      Launch::Of(KernelId::fill_units, {Blocks(count, kMoveThreads * kMoveEach)}, args));
}

void EmitFillOf(const void* host_value, int64_t element_bytes, void* to, int64_t count,
                std::vector<Launch>* launches) {
  if (count == 0) return;
  FillUnitsArgs args{};
  args.out = to;
  args.units = count;
  args.unit_bytes = static_cast<int32_t>(element_bytes);
  std::memcpy(args.value, host_value, static_cast<size_t>(element_bytes));
  launches->push_back(
      Launch::Of(KernelId::fill_units, {Blocks(count, kMoveThreads * kMoveEach)}, args));
}

}  // namespace floe::cuda
