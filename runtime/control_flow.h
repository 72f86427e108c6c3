// ControlFlow: runs If, Case, While and OnDevice, whose subgraphs are frames of their own.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "runtime/nested_plan.h"
#include "runtime/step_run.h"

namespace floe {

class Frame;

// Owns the frames of a plan's subgraphs. They use the pool and the observer of the step's run.
// Threading: one thread.
class ControlFlow {
 public:
  ControlFlow();
  ~ControlFlow();

  absl::Status Run(const StepRun& run);
  // Another plan is current, or memory is to be freed.
  void Clear();

 private:
  // Of one step.
  struct Nested {
    // Of the subgraphs. A While has two for its body, used in turn, so that one iteration's outputs
    // are the next one's inputs without a copy.
    std::vector<std::unique_ptr<Frame>> frames;
    std::vector<TensorView> inputs;  // of the step, in the run under way
    std::vector<ListTypePtr> lists;  // what is known of those it is handed, at `lists_rows`
    int64_t lists_rows = -1;
    // Of an island on a device, for inputs of the last run's shapes. Its plan is null before one.
    NestedPlan island;
    std::vector<Shape> island_shapes;
    bool island_covered = false;
    std::vector<Tensor> kept;  // loop variables that moved to another place in their list
  };

  static Frame& FrameOf(const StepRun& run, size_t i, Nested* nested);
  static void FindLists(const StepRun& run, Nested* nested);
  static absl::Status RunBranch(const StepRun& run, Nested* nested);
  static absl::Status RunWhile(const StepRun& run, Nested* nested);
  static absl::Status RunIsland(const StepRun& run, Nested* nested);
  static absl::Status RunOnHost(const StepRun& run, const CompiledSignature& program,
                                Nested* nested);
  static absl::Status BindIsland(const CompiledSignature& program, Nested* nested);
  // By the device, which computes all of the island's plan.
  static absl::Status RunOnDevice(const StepRun& run, Nested* nested);

  std::vector<Nested> nested_;  // by step
};

}  // namespace floe
