// StepRun: one step of a run, as the part of the frame that runs it is handed it.
#pragma once

#include <cstddef>

#include "base/thread_pool.h"
#include "runtime/frame_memory.h"
#include "runtime/run_observer.h"

namespace floe {

class IslandRuns;

struct StepRun {
  const Step& step;
  size_t number;  // in the plan
  FrameMemory& memory;
  ThreadPool* threads;
  RunObserver* observer;  // null: nobody is told
  bool checked;           // its memory is held against the plan (runtime/step_check.h)
  IslandRuns* islands;    // of the worker

  const Plan& plan() const { return *memory.plan(); }
  const Node& node() const { return plan().graph().node(step.node); }
};

}  // namespace floe
