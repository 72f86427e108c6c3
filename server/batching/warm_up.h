// Warm-up: runs a model before its first request, so that nothing is slow or allocated later, and
// measures it.
#pragma once

#include <vector>

#include "server/batching/plan_runner.h"

namespace floe::server {

struct WarmUpReport {
  std::vector<RunCost> costs;           // of forms whose inner dims are all known
  Duration slowest = Duration::zero();  // longest single run
  std::vector<std::string> notes;       // what was skipped and why, for the log
};

// Runs every form of every signature on every slot with zeros, at 1 row and at max_batch_rows.
// Unknown inner dims are tried as 1, and a form that refuses this guess is skipped. A form too slow
// for `patience` at max_batch_rows gets only its memory there. Fails when a form whose shapes are
// all known cannot be bound.
absl::StatusOr<WarmUpReport> WarmUp(const Model& model, PlanRunner* runner, int64_t max_batch_rows,
                                    Duration patience = std::chrono::seconds(1));

// The same work for slots added later; measures nothing and never fails.
void WarmUpSlots(const Model& model, PlanRunner* runner, int first_slot, int64_t max_batch_rows);

}  // namespace floe::server
