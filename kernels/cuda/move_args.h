// Kernels that move elements: their unit is 1, 2, 4, 8 or 16 bytes, whatever they mean.
#pragma once

#include <cstdint>

#include "kernels/cuda/divider.h"

namespace floe::cuda {

inline constexpr int kMoveThreads = 256, kMoveEach = 4, kMoveDims = 8;

// Output unit i has the index (i0, i1 ...) in `dim`: from sum of index * in_stride to sum of
// index * out_stride.
struct CopyArgs {
  const void* in;
  void* out;
  int64_t units;
  int32_t unit_bytes, dims;
  Divider dim[kMoveDims];
  int64_t in_stride[kMoveDims], out_stride[kMoveDims];
};

// As CopyArgs, where the last two dims are dense in the output and in the input: out[i][j] =
// in[j][i], `batches` times. Units of 4 bytes.
struct TransposeArgs {
  const uint32_t* in;
  uint32_t* out;
  int32_t rows, columns;  // of the output
  int64_t in_stride;      // from in[j] to in[j + 1]
  int64_t out_stride;     // from out[i] to out[i + 1]
  int32_t dims;           // around them: blockIdx.z
  Divider dim[kMoveDims];
  int64_t in_step[kMoveDims], out_step[kMoveDims];
};
inline constexpr int kTransposeSide = 32;

// Writes the unit in `value`, or at `from` on the device, to each of `units`.
struct FillUnitsArgs {
  void* out;
  const void* from;  // null: `value`
  int64_t units;
  int32_t unit_bytes;
  alignas(16) uint8_t value[16];
};

enum class PadMode : int32_t { kConstant, kReflect, kSymmetric };
struct PadArgs {
  const void* in;
  void* out;
  const void* value;  // null: zeros
  int64_t units;
  int32_t unit_bytes, dims;
  PadMode mode;
  Divider dim[kMoveDims];                                         // of the output
  int64_t low[kMoveDims], size[kMoveDims], in_stride[kMoveDims];  // of the input
};

// out[batch, outer, count, inner] = in[batch, outer, index[batch, count], inner].
struct GatherArgs {
  const void* in;
  const void* indices;
  void* out;
  int64_t units, along;
  int32_t unit_bytes, index_bytes;
  Divider inner, count, outer;
};

}  // namespace floe::cuda
