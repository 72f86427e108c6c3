// Estimated times of plans and runs: sums of EstimateMicros (kernels/step_cost.h).
#pragma once

#include <cstdint>

#include "runtime/plan.h"
#include "runtime/run_observer.h"

namespace floe {

// Microseconds of one call on one core, without the steps of subgraphs that it runs.
double StepMicros(const ObservedStep& observed);

// Whether a run's work is known from its rows alone: no loops or branches, no shapes that depend on
// data. Islands are no obstacle.
bool WorkIsKnown(const Plan& plan);
// Microseconds of a run on one core, where the work is known. Otherwise a part of it. Those of an
// island that has a device are the device's (runtime/device_cost.h).
double RunMicros(const Plan& plan, int64_t rows);

// Estimates the work of the runs that it observes, those of subgraphs included. Nothing is timed:
// equal runs have equal estimates.
class RunEstimate : public RunObserver {
 public:
  void StepStarts(const ObservedStep&) override {}
  void StepEnds(const ObservedStep& step) override { micros_ += StepMicros(step); }
  double micros() const { return micros_; }

 private:
  double micros_ = 0;
};

}  // namespace floe
