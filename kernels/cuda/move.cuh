// Strided copies, transposes, fills, pads and gathers.
#pragma once

#include "kernels/cuda/index.cuh"
#include "kernels/cuda/move_args.h"

namespace floe::cuda {

struct alignas(16) Unit16 {
  uint64_t low, high;
};

template <class T>
GPU_DEVICE void MoveUnit(void* out, int64_t to, const void* in, int64_t from) {
  static_cast<T*>(out)[to] = static_cast<const T*>(in)[from];
}

// One unit from place `from` of `in` to place `to` of `out`.
GPU_DEVICE void MoveUnit(int bytes, void* out, int64_t to, const void* in, int64_t from) {
  switch (bytes) {
    case 1:
      MoveUnit<uint8_t>(out, to, in, from);
      break;
    case 2:
      MoveUnit<uint16_t>(out, to, in, from);
      break;
    case 4:
      MoveUnit<uint32_t>(out, to, in, from);
      break;
    case 8:
      MoveUnit<uint64_t>(out, to, in, from);
      break;
    default:
      MoveUnit<Unit16>(out, to, in, from);
  }
}

GPU_DEVICE void ZeroUnit(int bytes, void* out, int64_t to) {
  switch (bytes) {
    case 1:
      static_cast<uint8_t*>(out)[to] = 0;
      break;
    case 2:
      static_cast<uint16_t*>(out)[to] = 0;
      break;
    case 4:
      static_cast<uint32_t*>(out)[to] = 0;
      break;
    case 8:
      static_cast<uint64_t*>(out)[to] = 0;
      break;
    default:
      static_cast<Unit16*>(out)[to] = Unit16{0, 0};
  }
}

GPU_KERNEL(copy, CopyArgs, kMoveThreads) {
  GPU_UNROLL
  for (int v = 0; v < kMoveEach; ++v) {
    int64_t i = ElementOf<kMoveThreads, kMoveEach>(v);
    if (i >= args.units) continue;
    int64_t from = 0, to = 0;
    for (int d = args.dims - 1; d > 0; --d) {
      int64_t index = 0;
      i = Divide(i, args.dim[d], &index);
      from += index * args.in_stride[d];
      to += index * args.out_stride[d];
    }
    from += i * args.in_stride[0];
    to += i * args.out_stride[0];
    MoveUnit(args.unit_bytes, args.out, to, args.in, from);
  }
}

// Through shared memory, so that both sides are read and written along their dense dims. One unit
// more a row: the threads of a warp find their column in different banks.
GPU_KERNEL(transpose, TransposeArgs, kMoveThreads) {
  constexpr int kSide = kTransposeSide, kRows = kMoveThreads / kSide;
  GPU_SHARED(uint32_t, tile, kSide * (kSide + 1));
  int64_t batch = blockIdx.z, from = 0, to = 0;
  for (int d = args.dims - 1; d >= 0; --d) {
    int64_t index = 0;
    batch = Divide(batch, args.dim[d], &index);
    from += index * args.in_step[d];
    to += index * args.out_step[d];
  }
  const int x = static_cast<int>(threadIdx.x) % kSide, y = static_cast<int>(threadIdx.x) / kSide;
  const int row0 = static_cast<int>(blockIdx.y) * kSide;
  const int column0 = static_cast<int>(blockIdx.x) * kSide;
  GPU_UNROLL
  for (int k = 0; k < kSide; k += kRows) {
    const int row = row0 + x, column = column0 + y + k;
    if (row < args.rows && column < args.columns)
      tile[(y + k) * (kSide + 1) + x] = args.in[from + column * args.in_stride + row];
  }
  __syncthreads();
  GPU_UNROLL
  for (int k = 0; k < kSide; k += kRows) {
    const int row = row0 + y + k, column = column0 + x;
    if (row < args.rows && column < args.columns)
      args.out[to + row * args.out_stride + column] = tile[x * (kSide + 1) + y + k];
  }
}

GPU_KERNEL(fill_units, FillUnitsArgs, kMoveThreads) {
  const void* const value = args.from != nullptr ? args.from : args.value;
  GPU_UNROLL
  for (int v = 0; v < kMoveEach; ++v) {
    const int64_t i = ElementOf<kMoveThreads, kMoveEach>(v);
    if (i < args.units) MoveUnit(args.unit_bytes, args.out, i, value, 0);
  }
}

GPU_KERNEL(pad, PadArgs, kMoveThreads) {
  GPU_UNROLL
  for (int v = 0; v < kMoveEach; ++v) {
    const int64_t i = ElementOf<kMoveThreads, kMoveEach>(v);
    if (i >= args.units) continue;
    int64_t left = i, from = 0;
    bool inside = true;
    for (int d = args.dims - 1; d >= 0; --d) {
      int64_t index = 0;
      left = Divide(left, args.dim[d], &index);
      index -= args.low[d];
      if (args.mode == PadMode::kConstant) {
        inside = inside && index >= 0 && index < args.size[d];
      } else {
        const int64_t skip = args.mode == PadMode::kReflect ? 0 : 1;
        if (index < 0) index = -index - skip;
        if (index >= args.size[d]) index = 2 * args.size[d] - 2 + skip - index;
      }
      from += index * args.in_stride[d];
    }
    if (inside) {
      MoveUnit(args.unit_bytes, args.out, i, args.in, from);
    } else if (args.value != nullptr) {
      MoveUnit(args.unit_bytes, args.out, i, args.value, 0);
    } else {
      ZeroUnit(args.unit_bytes, args.out, i);
    }
  }
}

GPU_KERNEL(gather, GatherArgs, kMoveThreads) {
  GPU_UNROLL
  for (int v = 0; v < kMoveEach; ++v) {
    const int64_t i = ElementOf<kMoveThreads, kMoveEach>(v);
    if (i >= args.units) continue;
    int64_t inner = 0, place = 0, outer = 0;
    const int64_t lines = Divide(i, args.inner, &inner);
    const int64_t slices = Divide(lines, args.count, &place);
    const int64_t batch = Divide(slices, args.outer, &outer);
    const int64_t at = batch * args.count.divisor + place;
    const int64_t index = args.index_bytes == 8   ? static_cast<const int64_t*>(args.indices)[at]
                          : args.index_bytes == 4 ? static_cast<const int32_t*>(args.indices)[at]
                                                  : static_cast<const int16_t*>(args.indices)[at];
    MoveUnit(args.unit_bytes, args.out, i, args.in,
             (slices * args.along + index) * args.inner.divisor + inner);
  }
}

}  // namespace floe::cuda
