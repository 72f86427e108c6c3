// Executor: what runs the batches of one served version.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/types/span.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "runtime/profile_report.h"
#include "server/executor/binding.h"

namespace floe::server {

// When a run is to be given up between two of its steps.
struct RunLimits {
  TimePoint deadline = TimePoint::max();
  const CancelToken* cancel = nullptr;  // null: none
  const Clock* clock = &Clock::Steady();
};

// Runs batches on one of a fixed number of slots (a slot is what one run occupies: an ExecContext).
// Threading: Bind, Expect, RunRows and Describe from any thread; Run and Outputs by one thread at
// a time per slot.
class Executor {
 public:
  virtual ~Executor() = default;
  virtual int slots() const = 0;
  // What the inference runs on, or why it cannot run (INVALID_ARGUMENT).
  virtual absl::StatusOr<Binding> Bind(const Inference& asked) = 0;
  // What a run of so many rows with the inference's key takes, by the estimate at load; zero:
  // not known.
  virtual Duration Expect(const Bound& bound, int64_t rows) const {
    (void)bound, (void)rows;
    return Duration::zero();
  }
  // How many rows are computed in a run of so many with the inference's key.
  virtual int64_t RunRows(const Bound& bound, int64_t rows) const {
    (void)bound;
    return rows;
  }
  // Its signature and non-batch dimensions, for statistics.
  virtual std::string Describe(const Bound& bound) const {
    (void)bound;
    return "";
  }
  // What the slot's run is doing: "node 'y' (MatMul)"; empty: nothing, or not known. Any thread,
  // while the run's inferences are alive.
  virtual std::string Doing(int slot) const {
    (void)slot;
    return "";
  }
  // Runs all of them at once. Not OK: no outputs; CANCELLED or DEADLINE_EXCEEDED only by the
  // limits.
  virtual absl::Status Run(int slot, absl::Span<const Bound* const> batch,
                           const RunLimits& limits) = 0;
  // Those of the inference whose rows begin at `first_row` of what the last OK Run(slot) computed.
  // Valid until the slot's next Run.
  virtual void Outputs(int slot, const Bound& bound, int64_t first_row, TensorViews* views) = 0;
  // Gives back memory that the slot keeps for runs like its last ones; it will be idle.
  virtual void Trim(int slot) { (void)slot; }
  // The next run is to be timed step by step, which costs it some readings of the clock. Any
  // thread.
  virtual void ProfileNextRun() {}
  // Of the last run that was, and that ended with OK; null: of none. Any thread.
  virtual std::shared_ptr<const RunProfile> LastProfile() const { return nullptr; }
};

}  // namespace floe::server
