// BatchRunner: runs batches, and hands out what came of them.
#pragma once

#include "server/scheduling/state.h"

namespace floe::server {

// Threading: any thread, one batch at a time per slot.
class BatchRunner {
 public:
  explicit BatchRunner(SchedulerState& state) : state_(state) {}

  // Runs the batch on its slot, and answers its requests; the list may be reordered. A batch that
  // fails or takes too long is halved and run again, until who fails is alone. Callers whose
  // requests fail alone are in quarantine for a while.
  void Run(int slot, absl::Span<Queued*> batch);

 private:
  absl::Status Execute(int slot, absl::Span<Queued* const> batch, bool* too_long);
  RunLimits LimitsOf(int slot, absl::Span<Queued* const> batch);
  void RunHalf(int slot, absl::Span<Queued*> half);
  absl::Status StillWanted(const Queued& request) const;
  void Finish(int slot, absl::Span<Queued* const> batch, const absl::Status& status);

  SchedulerState& state_;
};

}  // namespace floe::server
