// DynamicSteps: runs the steps whose shapes a run settles, but for control flow.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "runtime/step_run.h"

namespace floe {

// Owns what was settled for each step. Threading: one thread.
class DynamicSteps {
 public:
  // Inference on the values at hand, memory from the pool, then the kernel.
  absl::Status Run(const StepRun& run);
  // Another plan or other rows are current, or memory is to be freed.
  void Clear() { settled_.clear(); }

 private:
  // What came of the shapes that came in last. In a loop they are the same iteration after
  // iteration.
  struct Settled {
    std::vector<Shape> inputs;
    std::vector<TensorView> outputs;  // without data
    int64_t scratch_bytes = 0;
    bool needs_values = false;  // shapes alone do not tell the outputs'

    bool HoldsFor(absl::Span<const TensorView> views) const;
  };

  static absl::Status Settle(const StepRun& run, absl::Span<const TensorView> inputs,
                             Settled* result);
  static absl::Status RunAllocating(const StepRun& run, absl::Span<const TensorView> inputs);
  static absl::Status RunSettled(const StepRun& run, absl::Span<TensorView> args,
                                 const Settled& settled);

  std::vector<Settled> settled_;  // by step
  std::vector<TensorView> args_;  // of the step under way: inputs, then outputs
};

}  // namespace floe
