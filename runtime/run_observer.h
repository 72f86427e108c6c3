// RunObserver: is told when each step of a run starts and ends, for profiling and tests.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "model/tensor.h"

namespace floe {

class Plan;

// A step about to run, or just run. Valid during the call only.
struct ObservedStep {
  const std::shared_ptr<const Plan>& plan;  // of a subgraph, in control flow; never null
  size_t step;                              // in plan->steps()
  int64_t rows;                             // that the plan runs at
  // By slot of the plan: dtype and shape. Those of the step's outputs are known when it ends, also
  // where only the run settles them. Data pointers may be stale.
  absl::Span<const TensorView> slots;
};

// Ownership: the caller's, who passes it to ExecContext::Observe and keeps it until the last run.
// Threading: called by the thread that calls ExecContext::Run, never at the same time for one
// context. One observer may serve several contexts only where these run on one thread.
// Steps of branches and loop bodies are reported between the start and the end of their If or
// While. A step that fails ends too, and no step of the run follows; but one that runs out of
// memory by std::bad_alloc does not end.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  virtual void StepStarts(const ObservedStep& step) = 0;
  virtual void StepEnds(const ObservedStep& step) = 0;
};

}  // namespace floe
