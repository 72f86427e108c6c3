// StepProfile: times the steps of runs, those of loop bodies and branches included.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "runtime/plan.h"
#include "runtime/run_observer.h"

namespace floe {

// One step of the plan, or of a subgraph as one caller runs it. Sums over all runs.
struct TimedStep {
  const Node* node = nullptr;      // lives in the model
  const Kernel* kernel = nullptr;  // the same; null: an alias, or control flow
  int caller = -1;                 // index of the control flow step that ran it; -1: none
  int64_t calls = 0;
  Duration self{};   // without the steps it ran in subgraphs
  Duration total{};  // with them
  double flops = 0;  // as inspect estimates them, at the shapes that came; none of control flow
  double bytes = 0;  // of inputs, weights and outputs; none of control flow
  double estimated_us = 0;  // StepMicros; none of control flow
};

// One call of a step, for a trace. Times since the first run that was kept.
struct TimedCall {
  int step = -1;  // in steps(); -1: the whole run
  Duration start{}, length{};
};

// Its own work is in no figure, but one reading of the clock is in each call of a step.
// Threading: one thread, that of the runs.
class StepProfile : public RunObserver {
 public:
  // Around each run.
  void StartRun();
  void EndRun();
  // Keeps the calls of the runs to come.
  void KeepCalls() { keep_ = true; }

  void StepStarts(const ObservedStep& step) override;
  void StepEnds(const ObservedStep& step) override;

  int64_t runs() const { return runs_; }
  Duration run_time() const { return run_time_; }                 // of all runs
  const std::vector<TimedStep>& steps() const { return steps_; }  // in the order they first ran
  const std::vector<TimedCall>& calls() const { return calls_; }  // in the order they ended

 private:
  // A step, or the run itself, that has not ended.
  struct Open {
    int step = -1;
    TimePoint entered;    // before the observer's work
    TimePoint started;    // after it
    Duration excluded{};  // nested steps and the observer's work for them
    Duration nested{};    // nested steps alone
  };
  // What one call of a step costs, while plan and rows stay the same.
  struct Cost {
    std::shared_ptr<const Plan> plan;
    int64_t rows = -1;
    double flops = 0, bytes = 0, estimated_us = 0;
  };

  int Find(const ObservedStep& step);
  void AddCost(const ObservedStep& step, int index);
  Open Close(TimePoint ended);

  std::vector<TimedStep> steps_;
  std::vector<Cost> costs_;                           // by step
  std::map<std::pair<int, const Node*>, int> index_;  // caller and node -> step
  std::vector<Open> open_;                            // innermost last; the run is the first
  std::vector<TimedCall> calls_;
  TimePoint kept_from_;
  bool keep_ = false;
  int64_t runs_ = 0;
  Duration run_time_{};
};

}  // namespace floe
