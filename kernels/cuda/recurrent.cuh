// A recurrent layer in one launch: a block takes some rows through all steps, so that no step waits
// for another block. Each thread has units of its own, and each sum is one thread's, in ascending
// order of the units before. Kernels differ in where a block has its states and the weights.
#pragma once

#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/recurrent_args.h"

namespace floe::cuda {

GPU_DEVICE_CALL float ApplyGate(const GateArgs& gate, float x) {
  if (!gate.hard_sigmoid) return Activate(x, gate.activation, gate.scale);
  const float y = gate.scale * x + gate.shift;
  return y < 0 ? 0.0f : y > 1.0f ? 1.0f : y;
}

// What a block works on: vectors of kRecurrentRows numbers, by unit.
struct RecurrentBlock {
  const RecurrentArgs& args;
  const float* weights;  // args.r, or its copy
  float *h, *h_next, *reset_h;
  int row0, rows;  // there may be fewer than kRecurrentRows

  // The sums of `kGates` gates from `first` on of unit u, over `from`.
  template <int kGates>
  GPU_DEVICE void Recur(const float* from, int first, int columns, int u,
                        float (&sums)[kGates][kRecurrentRows]) const {
    GPU_UNROLL
    for (int g = 0; g < kGates; ++g) {
      GPU_UNROLL
      for (int i = 0; i < kRecurrentRows; ++i) sums[g][i] = 0;
    }
    const float* r = weights + static_cast<int64_t>(first) * args.units + u;
    GPU_NO_UNROLL
    for (int k = 0; k < args.units; ++k, r += static_cast<int64_t>(columns) * args.units) {
      const float4 four = *reinterpret_cast<const float4*>(from + k * kRecurrentRows);
      const float row[kRecurrentRows] = {four.x, four.y, four.z, four.w};
      GPU_UNROLL
      for (int g = 0; g < kGates; ++g) {
        const float weight = r[g * args.units];
        GPU_UNROLL
        for (int i = 0; i < kRecurrentRows; ++i) sums[g][i] = Fma(row[i], weight, sums[g][i]);
      }
    }
  }
  // x W + b of a gate.
  GPU_DEVICE float Input(int i, int t, int gate, int columns, int u) const {
    const int column = gate * args.units + u;
    return args.z[(row0 + i) * args.z_row + static_cast<int64_t>(t) * columns * args.units +
                  column] +
           args.bias[column];
  }
  GPU_DEVICE bool Sees(int i, int step) const {
    if (args.mask == nullptr) return true;
    const int t = args.backwards ? args.mask_time - 1 - step : step;
    return args.mask[(row0 + i) * args.mask_row + t] != 0;
  }
  // Ends a step for a row and a unit: its new state, unless the row does not see the step.
  GPU_DEVICE void Put(int i, int step, int u, float value) const {
    const bool sees = Sees(i, step);
    const int at = u * kRecurrentRows + i;
    h_next[at] = sees ? value : h[at];
    if (args.sequence == nullptr) return;
    float* const out =
        args.sequence + ((row0 + i) * static_cast<int64_t>(args.steps) + step) * args.units + u;
    *out = sees                            ? value
           : args.zero_output || step == 0 ? 0.0f
                                           : *(out - args.units);  // written by this thread
  }

  GPU_DEVICE void Lstm(int step, int t, int u) const {
    float sums[4][kRecurrentRows];
    Recur<4>(h, 0, 4, u, sums);
    GPU_UNROLL
    for (int i = 0; i < kRecurrentRows; ++i) {
      if (i >= rows) continue;
      float* const c = args.last_c + static_cast<int64_t>(row0 + i) * args.units + u;
      const float in = ApplyGate(args.gates[0], Input(i, t, 0, 4, u) + sums[0][i]);
      const float forget = ApplyGate(args.gates[1], Input(i, t, 1, 4, u) + sums[1][i]);
      const float fresh = ApplyGate(args.gates[2], Input(i, t, 2, 4, u) + sums[2][i]);
      const float out = ApplyGate(args.gates[3], Input(i, t, 3, 4, u) + sums[3][i]);
      const float state = Fma(forget, *c, in * fresh);
      if (Sees(i, step)) *c = state;
      Put(i, step, u, out * ApplyGate(args.gates[4], state));
    }
  }
  GPU_DEVICE void GruResetAfter(int step, int t, int u) const {
    float sums[3][kRecurrentRows];
    Recur<3>(h, 0, 3, u, sums);
    GPU_UNROLL
    for (int i = 0; i < kRecurrentRows; ++i) {
      if (i >= rows) continue;
      const float update = ApplyGate(args.gates[0], Input(i, t, 0, 3, u) + sums[0][i]);
      const float reset = ApplyGate(args.gates[1], Input(i, t, 1, 3, u) + sums[1][i]);
      const float inner = reset * (sums[2][i] + args.inner_bias[u]);
      const float fresh = ApplyGate(args.gates[2], Input(i, t, 2, 3, u) + inner);
      Put(i, step, u, Fma(update, h[u * kRecurrentRows + i], (1.0f - update) * fresh));
    }
  }
  // In two parts: all of reset_h is there before the second. Between them h_next has the update.
  GPU_DEVICE void GruUpdate(int t, int u) const {
    float sums[2][kRecurrentRows];
    Recur<2>(h, 0, 3, u, sums);
    GPU_UNROLL
    for (int i = 0; i < kRecurrentRows; ++i) {
      const int at = u * kRecurrentRows + i;
      reset_h[at] = 0;
      if (i >= rows) continue;
      h_next[at] = ApplyGate(args.gates[0], Input(i, t, 0, 3, u) + sums[0][i]);
      reset_h[at] = ApplyGate(args.gates[1], Input(i, t, 1, 3, u) + sums[1][i]) * h[at];
    }
  }
  GPU_DEVICE void GruResetBefore(int step, int t, int u) const {
    float sums[1][kRecurrentRows];
    Recur<1>(reset_h, 2, 3, u, sums);
    GPU_UNROLL
    for (int i = 0; i < kRecurrentRows; ++i) {
      if (i >= rows) continue;
      const int at = u * kRecurrentRows + i;
      const float update = h_next[at];
      const float fresh = ApplyGate(args.gates[2], Input(i, t, 2, 3, u) + sums[0][i]);
      Put(i, step, u, Fma(update, h[at], (1.0f - update) * fresh));
    }
  }
  GPU_DEVICE void Simple(int step, int t, int u) const {
    float sums[1][kRecurrentRows];
    Recur<1>(h, 0, 1, u, sums);
    GPU_UNROLL
    for (int i = 0; i < kRecurrentRows; ++i) {
      if (i >= rows) continue;
      Put(i, step, u, ApplyGate(args.gates[0], Input(i, t, 0, 1, u) + sums[0][i]));
    }
  }

  GPU_DEVICE void Step(int step) const {
    const int t = args.backwards ? args.time - 1 - step : step;
    const int first = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
    if (args.kind == RecurrentKind::kGruResetBefore) {
      for (int u = first; u < args.units; u += threads) GruUpdate(t, u);
      __syncthreads();
    }
    for (int u = first; u < args.units; u += threads) {
      if (args.kind == RecurrentKind::kLstm) Lstm(step, t, u);
      if (args.kind == RecurrentKind::kGruResetAfter) GruResetAfter(step, t, u);
      if (args.kind == RecurrentKind::kGruResetBefore) GruResetBefore(step, t, u);
      if (args.kind == RecurrentKind::kSimple) Simple(step, t, u);
    }
  }
};

// RecurrentStateFloats, which is the host's.
GPU_DEVICE int64_t StateFloatsOf(const RecurrentArgs& args) {
  return int64_t{3} * kRecurrentRows * args.units;
}

// `state` has room for StateFloatsOf(args).
GPU_DEVICE void RunRecurrent(const RecurrentArgs& args, const float* weights, float* state) {
  const int row0 = static_cast<int>(blockIdx.x) * kRecurrentRows;
  const int rows = args.rows - row0 < kRecurrentRows ? args.rows - row0 : kRecurrentRows;
  const int64_t floats = static_cast<int64_t>(args.units) * kRecurrentRows;
  RecurrentBlock block = {args, weights, state, state + floats, state + 2 * floats, row0, rows};
  for (int u = static_cast<int>(threadIdx.x); u < args.units; u += 256) {
    for (int i = 0; i < kRecurrentRows; ++i) {
      block.h[u * kRecurrentRows + i] = i < rows ? args.h[(row0 + i) * args.h_row + u] : 0.0f;
      block.h_next[u * kRecurrentRows + i] = 0;
      if (i < rows && args.kind == RecurrentKind::kLstm) {
        args.last_c[static_cast<int64_t>(row0 + i) * args.units + u] =
            args.c[(row0 + i) * args.c_row + u];
      }
    }
  }
  for (int step = 0; step < args.steps; ++step) {
    __syncthreads();
    block.Step(step);
    float* const before = block.h;
    block.h = block.h_next;
    block.h_next = before;
  }
  for (int u = static_cast<int>(threadIdx.x); u < args.units; u += 256) {
    for (int i = 0; i < rows; ++i) {
      args.last_h[static_cast<int64_t>(row0 + i) * args.units + u] =
          block.h[u * kRecurrentRows + i];
    }
  }
}

GPU_KERNEL(recurrent, RecurrentArgs, 256) {
  GPU_SHARED(float, state, kRecurrentFloats);
  RunRecurrent(args, args.r, state);
}

// The first step's barrier stands between the copy and its readers.
GPU_KERNEL(recurrent_kept, RecurrentArgs, 256) {
  GPU_SHARED(float, room, kRecurrentFloats);
  const int states = static_cast<int>(StateFloatsOf(args));
  const int count = args.columns * args.units * args.units;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += 256) room[states + i] = args.r[i];
  RunRecurrent(args, room + states, room);
}

GPU_KERNEL(recurrent_wide, RecurrentArgs, 256) {
  RunRecurrent(args, args.r, args.state + blockIdx.x * StateFloatsOf(args));
}

}  // namespace floe::cuda
