// Warm-up: runs a model before its first request, so that nothing is slow or allocated later, and
// estimates what its runs take.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/executor/plan_executor.h"

namespace floe::server {

// How long a run of the warm-up may take: one that never ends must not keep a load, nor its thread.
struct WarmUpLimits {
  Duration longest = std::chrono::seconds(10);
  const CancelToken* cancel = nullptr;  // the load is given up; null: it is not
};

// Of a run that begins now.
RunLimits LimitsNow(const WarmUpLimits& limits);

struct WarmUpOptions {
  int64_t max_rows = 64;  // of a batch
  // The best number of rows up to max_rows is chosen by the estimates, and slots get memory for so
  // many. Where these are guesses it is at most 64.
  bool choose_rows = false;
  int64_t max_arena_bytes = int64_t{1} << 40;  // where rows are chosen: no run that needs more
  // Every variant runs with one row and with some, and nothing is chosen.
  bool trial = false;
  WarmUpLimits limits;
};

struct WarmUpReport {
  std::vector<RunCost> costs;
  Duration slowest = Duration::zero();  // longest single run
  std::vector<std::string> notes;       // what was skipped and why, for the log
};

// Runs every variant of every signature with zeros, on every slot what is quick, and gives the
// slots memory for the rest. Costs are estimates (runtime/estimate.h): the same file has the same
// ones at every start. Where data decide about the work, they are those of zeros. A variant that
// runs the program of an earlier one has its costs. Unknown non-batch dimensions are tried as 1,
// and a variant that refuses this guess is skipped, and so is one that takes longer than allowed.
// Fails when a variant whose shapes are all known cannot be bound; CANCELLED when the load is given
// up.
absl::StatusOr<WarmUpReport> WarmUp(const Model& model, PlanExecutor* executor,
                                    const WarmUpOptions& options);

// The same for slots added later; never fails.
void WarmUpSlots(const WarmUpReport& report, PlanExecutor* executor, int first_slot,
                 const WarmUpOptions& options);

// For the threads that will serve: runs of one row of what is quick, where it makes a difference
// whether a thread ran anything before. The executor and the model must outlive it, and
// limits.cancel its calls.
std::function<void(int slot)> FirstRuns(const WarmUpReport& report, PlanExecutor* executor,
                                        const WarmUpLimits& limits);

// Runs a request on every slot, so often, in runs of as many rows as it would have. Its error if it
// fails; DEADLINE_EXCEEDED when a run takes longer than allowed.
absl::Status WarmUpWith(const Inference& asked, int64_t times, const WarmUpLimits& limits,
                        PlanExecutor* executor, WarmUpReport* report);

}  // namespace floe::server
