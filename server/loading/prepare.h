// From a compiled model and its configuration to what a Scheduler needs: slots, warm-up, estimated
// costs, limits.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "config/cpu_budget.h"
#include "kernels/cuda/device/device_gate.h"
#include "server/scheduling/scheduler.h"

namespace floe::server {

struct SchedulerSetup {
  std::unique_ptr<Executor> executor;
  Scheduler::Options options;
  std::vector<std::string> notes;  // for the log
  int64_t memory_bytes = 0;        // that its slots hold from the warm-up on
};

struct PrepareOptions {
  CpuShares cpu_shares;
  bool replay_recorded = false;  // runs requests recorded with the model (warm_up_requests.h)
  int64_t replays = 1;           // how often each of them runs
  // What the runs of a model may take at the same time, where it does not say; 0: no limit.
  int64_t run_bytes = 0;
  // Where estimates choose the rows of a batch: bytes of the largest arena that slots get for it.
  int64_t arena_bytes = int64_t{1} << 40;
  // batching_params.pbtxt beside the model's file stands in place of the configured batching.
  bool own_batching_parameters = false;
  bool warm_up_optional = false;  // a failure of theirs is a note only
  bool trial = false;             // a trial load: everything runs, and nothing is chosen
  // How long a run may take at most, and one of a recorded request.
  Duration longest_run = std::chrono::seconds(10);
  Duration longest_recorded_run = std::chrono::seconds(60);
  const CancelToken* cancel = nullptr;  // the load is given up; null: it is not
  // Of a model with islands on a device; null: the CPU computes all of it.
  std::shared_ptr<cuda::DeviceGate::User> device_user;
};

// Between which sizes the arenas of a model's slots will be.
struct SlotBounds {
  bool chosen = false;  // estimates choose the rows of a run, up to `rows`; otherwise `rows` it is
  int64_t rows = 1;
  int64_t arena_bytes = 0;  // where rows are chosen, those that need more are not, beyond one row
  int64_t workers = 1;
  int64_t most_slots = 1;  // those of transport threads, which inline models get, are among them
};
SlotBounds BoundsOfSlots(const ModelConfig& config, const PrepareOptions& prepare);

// Runs the model (warm-up), so never on a thread that serves. Fails when the model
// cannot be run at all, or its cpu_set, padding values or batching_params.pbtxt are wrong. Fails
// also when a request recorded in assets.extra/tf_serving_warmup_requests beside its file does.
// CANCELLED when the load is given up.
absl::StatusOr<SchedulerSetup> PrepareScheduler(const Model& model, const ModelConfig& config,
                                                const PrepareOptions& options = {});

}  // namespace floe::server
