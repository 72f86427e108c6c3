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
// Microseconds of a run, where the work is known. Otherwise a part of it. The host's work is shared
// by so many threads. That of an island that has a device is the device's (runtime/device_cost.h).
double RunMicros(const Plan& plan, int64_t rows, int threads = 1);

// Estimates the work of the runs that it observes, those of subgraphs included. Nothing is timed:
// equal runs have equal estimates.
class RunEstimate : public RunObserver {
 public:
  void StepStarts(const ObservedStep&) override {}
  void StepEnds(const ObservedStep& step) override;
  // As of RunMicros.
  double micros(int threads = 1) const { return host_ / threads + device_; }

 private:
  double host_ = 0, device_ = 0;
};

}  // namespace floe
