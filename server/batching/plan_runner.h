// PlanRunner: runs batches of a compiled model; one ExecContext per slot.
#pragma once

#include <memory>
#include <vector>

#include "server/batching/task.h"

namespace floe::server {

// What a run of one form of a signature takes, measured at warm-up: fixed_us + per_row_us * rows.
struct RunCost {
  const CompiledSignature* form = nullptr;
  double fixed_us = 0, per_row_us = 0;
};

// A request with more rows than one run may have is computed in pieces of that size, so that memory
// stays bounded and a caller who left or is too late is noticed in between. Threading: as
// BatchRunner. Slots and costs are set up before the first request.
class PlanRunner : public BatchRunner {
 public:
  // `max_batch_rows`: of one run. The model lives as long as its tasks'
  // requests hold it.
  PlanRunner(int slots, int intra_op_threads, int64_t max_batch_rows);

  int slots() const override { return static_cast<int>(slots_.size()); }
  absl::Status Admit(Task* task) override;
  absl::Status Run(int slot, absl::Span<Task* const> batch) override;
  void Outputs(int slot, const Task& task, int64_t first_row, OutputViews* views) override;
  void Trim(int slot) override;

  // Tasks expected to take less are marked cheap; forms without a cost never are.
  void SetCosts(std::vector<RunCost> costs, double inline_below_us);
  void AddSlots(int count, int intra_op_threads);
  ExecContext& context(int slot) { return *slots_[slot].context; }

 private:
  struct Slot {
    std::unique_ptr<ExecContext> context;
    bool sliced = false;           // the last run's outputs are shared by several tasks
    std::vector<Tensor> gathered;  // the outputs of a run in pieces; empty otherwise
  };

  absl::Status RunOnce(Slot* slot, absl::Span<Task* const> batch);
  absl::Status RunInPieces(Slot* slot, const Task& task);

  const int64_t max_batch_rows_;
  std::vector<Slot> slots_;
  std::vector<RunCost> costs_;
  double inline_below_us_ = 0;
};

}  // namespace floe::server
