// What tests and debug builds ask of every step of a run. Its indices and addresses must be those
// of the plan, and it reads and writes no memory but its own.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/kernel.h"
#include "runtime/step_run.h"

namespace floe {

// All give INTERNAL where something is wrong; debug builds end there, as of an assertion.

// Before the step: every index names something, and its values lie where the plan says and apart
// from what it must not touch. Fills what it is to write.
absl::Status CheckStep(const StepRun& run);
// The same of a static step's scratch, and of its arguments among those of all steps.
absl::Status CheckArguments(const StepRun& run, absl::Span<const TensorView> args);
// Runs the step's kernel on scratch that was filled: it wrote nothing behind that.
absl::Status RunKernelChecked(const StepRun& run, const KernelContext& context,
                              int64_t scratch_bytes);
// After the step: it wrote nothing behind its outputs.
absl::Status CheckOutputs(const StepRun& run);

}  // namespace floe
