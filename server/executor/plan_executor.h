// PlanExecutor: runs batches of a compiled model; one ExecContext per slot.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/running.h"
#include "kernels/cuda/device/device_gate.h"
#include "server/executor/cost_curve.h"
#include "server/executor/executor.h"
#include "server/executor/padding.h"

namespace floe::server {

// What runs of one variant of a signature take, as estimated at load.
struct RunCost {
  const CompiledSignature* variant = nullptr;
  CostCurve curve;
  bool exact = true;  // false: runs also depend on values, or on non-batch dimensions that had to
                      // be guessed
  int64_t max_rows = 0;           // the best size of a batch by the curve; 0: not chosen
  double batch_gain = 1;          // CostCurve::BatchGain
  std::string why_not_batchable;  // empty: batchable
};

// The most rows of which a run of the plan needs no more than `bytes`, at least 1.
int64_t RowsWithin(const Plan& plan, int64_t bytes);

// Runs what the context is prepared for, until the limits say otherwise.
absl::Status RunWithin(const RunLimits& limits, ExecContext* context);

// Threading: as Executor. Slots and costs are set up before the first request. One class: it is an
// Executor, whose methods are half of them, and the others set it up.
class PlanExecutor : public Executor {
 public:
  struct Options {
    int64_t max_rows = 64;         // of one run
    int64_t max_request_rows = 0;  // a request of more is refused; 0: none is
    // Ascending. A run is padded up to the next size with copies of its last row; empty: never.
    std::vector<int64_t> allowed_rows;
    // A batch is kept so small that a run needs no more than this.
    int64_t max_arena_bytes = int64_t{1} << 40;
    // Of the values of a run; more is RESOURCE_EXHAUSTED. At least max_arena_bytes.
    int64_t max_run_bytes = int64_t{1} << 40;
    double inline_below_us = 0;  // requests expected to take less are marked quick
    std::shared_ptr<cuda::DeviceGate::User> device_user;  // of its runs; null: of nobody
    MemoryFill fill = MemoryFill::kNone;  // for tests: ExecContext::CheckMemory of every slot
  };
  // The model lives as long as requests hold it.
  PlanExecutor(int slots, int intra_op_threads, Options options);

  int slots() const override { return static_cast<int>(slots_.size()); }
  absl::StatusOr<Binding> Bind(const Inference& asked) override;
  Duration Expect(const Bound& bound, int64_t rows) const override;
  int64_t RunRows(const Bound& bound, int64_t rows) const override;
  std::string Describe(const Bound& bound) const override;
  std::string Doing(int slot) const override;
  absl::Status Run(int slot, absl::Span<const Bound* const> batch,
                   const RunLimits& limits) override;
  void Outputs(int slot, const Bound& bound, int64_t first_row, TensorViews* views) override;
  void Trim(int slot) override;
  void ProfileNextRun() override { profiles_next_.store(true, std::memory_order_relaxed); }
  std::shared_ptr<const RunProfile> LastProfile() const override;

  // Variants without a cost are never quick.
  void SetCosts(std::vector<RunCost> costs) { costs_ = std::move(costs); }
  // From now on requests whose inputs differ in non-batch dimensions share runs, padded at the ends
  // (Padding::Of). What comes out depends on who shares the run: outputs have the non-batch
  // dimensions of the longest.
  absl::Status PadNonBatchDims(const Model& model, const std::map<std::string, double>& values);
  void AddSlots(int count, int intra_op_threads);
  ExecContext& context(int slot) { return *slots_[slot].context; }
  const Options& options() const { return options_; }

 private:
  struct Slot : Running {
    size_t Describe(char* text, size_t size) const override;

    std::unique_ptr<ExecContext> context;
    bool shared = false;  // the last run's outputs hold more rows than one request's
    std::atomic<const ModelInfo*> model{nullptr};  // of the run under way, where it is known
  };

  void BindRows(const Plan& plan, Bound* bound) const;
  absl::Status CheckRequestRows(int64_t rows) const;
  absl::Status RunProfiled(const RunLimits& limits, int64_t rows, ExecContext* context);

  const Options options_;
  std::deque<Slot> slots_;
  std::vector<RunCost> costs_;
  Padding padding_;
  std::atomic<bool> profiles_next_{false};
  mutable Mutex profile_mutex_;
  std::shared_ptr<const RunProfile> profile_ ABSL_GUARDED_BY(profile_mutex_);
};

}  // namespace floe::server
