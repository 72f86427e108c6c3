// Of recurrent layers.
#pragma once

#include <cstdint>

#include "model/epilogue.h"

namespace floe::cuda {

// As ops::RecurrentCell, whose header is no device code's.
enum class RecurrentKind : uint8_t { kLstm, kGruResetAfter, kGruResetBefore, kSimple };

struct GateArgs {
  Activation activation;
  bool hard_sigmoid;   // instead: scale * x + shift, cut to [0, 1]
  float scale, shift;  // scale is also LeakyRelu's slope
};

inline constexpr int kRecurrentRows = 4;            // of a block
inline constexpr int kRecurrentFloats = 12 * 1024;  // of shared memory
// Three states of a block: h, the next h, and r h of a reset-before GRU.
constexpr int64_t RecurrentStateFloats(int64_t units) { return 3 * kRecurrentRows * units; }

// Which kernel computes a layer; all give the same bits.
enum class RecurrentRoom : uint8_t {
  kAll,     // recurrent_kept: states and r in shared memory, r is read once
  kStates,  // recurrent: states in shared memory
  kNone,    // recurrent_wide: states in `state`
};
constexpr RecurrentRoom RecurrentRoomFor(int64_t units, int64_t columns) {
  const int64_t states = RecurrentStateFloats(units);
  if (units <= kRecurrentFloats && states + columns * units * units <= kRecurrentFloats)
    return RecurrentRoom::kAll;
  return states <= kRecurrentFloats ? RecurrentRoom::kStates : RecurrentRoom::kNone;
}

// A whole layer, but for x W. Steps of 0 rows serve all rows. Outputs may be null; but `last_c` is
// where c is kept. blockIdx.x: rows in fours.
struct RecurrentArgs {
  const float* z;                  // x W: [rows, time, gates of units]
  int64_t z_row;                   // elements from one row to the next, as for h, c and the mask
  const float *bias, *inner_bias;  // of all gates; rb of a reset-after GRU
  const float* r;                  // [units, gates of units]
  const float *h, *c;
  int64_t h_row, c_row;
  const uint8_t* mask;  // null: every step is seen
  int64_t mask_row;
  float* state;     // of recurrent_wide: RecurrentStateFloats(units) for each block
  float* sequence;  // [rows, steps, units]
  float* last_h;
  float* last_c;
  GateArgs gates[5];
  int32_t rows, time, steps, units, mask_time;
  int32_t columns;  // of r and z, in units
  RecurrentKind kind;
  bool backwards, zero_output;
};

}  // namespace floe::cuda
