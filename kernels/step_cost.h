// EstimateMicros: how long a step takes, from its types and constants of the instruction set.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "kernels/kernel.h"

namespace floe {

// One call of a step of a plan. Shapes are known but for rows; a dim that is not counts as 1.
struct StepCall {
  const Node& node;
  const Kernel* kernel;  // null: an alias, or control flow
  absl::Span<const TensorType> inputs, outputs;
  int64_t rows;
  // Bit i: input i is part of the model. Inputs past 63 count as computed.
  uint64_t constants = 0;
  bool weights_stay_cached = true;  // between runs; for a model by its size
  bool dynamic = false;             // its outputs get memory during the run
  int64_t bytes_in_place = 0;       // that lie where they are wanted already, and are not moved
};

// Microseconds on one core. The chosen route's estimate where there were several, and otherwise by
// operations and bytes. Nothing is measured: the same call on the same instruction set gives the
// same figure at every start. It means the steps of usual models to within a factor of two.
double EstimateMicros(const StepCall& call);

}  // namespace floe
