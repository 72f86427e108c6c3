// StaticSteps: runs the steps whose shapes and places a plan knows.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "runtime/step_run.h"

namespace floe {

// Owns the arguments of all of a plan's steps, made before the run. Threading: one thread.
class StaticSteps {
 public:
  // What the memory's slots show are the arguments from now on.
  void Show(const FrameMemory& memory);
  // The same of input i alone.
  void ShowInput(const FrameMemory& memory, int i);

  absl::Status Run(const StepRun& run) const;

 private:
  std::vector<TensorView> args_;  // from Step::first_arg: inputs, then outputs
};

}  // namespace floe
