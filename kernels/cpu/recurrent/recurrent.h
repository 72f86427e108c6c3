// FusedRecurrent: what its driver, its vector code and its plain form share.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/cpu/gemm/gemm_operands.h"
#include "kernels/kernel.h"
#include "model/ops/recurrent.h"

namespace floe::kernels {

// Sizes of one run. `rows` is the batch; an input of one row serves all rows.
struct RecurrentSizes {
  int64_t rows, time, in, steps;

  // INVALID_ARGUMENT names sizes that do not belong together.
  static absl::StatusOr<RecurrentSizes> Of(const ops::RecurrentSpec& spec,
                                           absl::Span<const TensorView> inputs);
};

// Row `row` of a state [rows or 1, ...] of `width` floats.
inline const float* StateRow(const TensorView& state, int64_t row, int64_t width) {
  return state.as<float>() + (state.shape.dim(0) == 1 ? 0 : row * width);
}

// Whether a row sees a step, by a mask [rows or 1, time]. Read from the end where the layer is: the
// mask may be longer than the sequence.
inline bool MaskAt(const ops::RecurrentSpec& spec, const TensorView& mask, int64_t row,
                   int64_t step) {
  const int64_t time = mask.shape.dim(1), t = spec.backwards ? time - 1 - step : step;
  return mask.as<bool>()[(mask.shape.dim(0) == 1 ? 0 : row * time) + t];
}

// The layout that one step works on. Units are padded to blocks of one vector. Gates of a row lie
// block by block, in a block gate by gate: [block][gate][lane]. Padding is computed, but never
// read.
struct RecurrentLayout {
  int64_t lanes, units, blocks;
  int gates;
  int64_t width() const { return blocks * lanes; }        // of h and c
  int64_t gate_width() const { return width() * gates; }  // of the gates
  int64_t PackedFloats(int gate_count) const { return units * width() * gate_count; }
};

// One step of `rows` rows. The results of a row depend on nothing but the row.
struct RecurrentStep {
  const RecurrentLayout* layout;
  const ops::RecurrentGate* gates;  // as in RecurrentSpec
  const PackedWeights* r;      // [block][unit][gate][lane]; for a reset-before GRU z and r alone
  const PackedWeights* r_new;  // of n alone, for a reset-before GRU; in the precision of r
  const float* bias;           // rb of a reset-after GRU
  const float* z;              // x W + b of row 0
  int64_t z_stride;            // floats from row to row
  const float* h;              // rows of width()
  float* h_next;               // not h
  float* c;                    // changed in place
  float* update;               // rows of width(), for a reset-before GRU, as is `reset_h`
  float* reset_h;
};

struct RecurrentKernels {
  int64_t lanes;
  // By RecurrentCell, for weights of one precision. Never allocate, never fail, any thread.
  void (*step[4])(const RecurrentStep& step, int64_t rows);
};

// For this CPU and the functions of these gates; call once, when a kernel is made.
RecurrentKernels PickRecurrent(const ops::RecurrentSpec& spec, Precision precision);

// Plain loops with float64 sums: the reference.
std::unique_ptr<Kernel> MakePlainRecurrent(const ops::RecurrentSpec& spec);

}  // namespace floe::kernels
