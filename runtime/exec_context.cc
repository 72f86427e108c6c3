#include "runtime/exec_context.h"

#include <algorithm>

#include "base/denormals.h"
#include "base/status.h"
#include "runtime/frame.h"

namespace floe {

ExecContext::ExecContext(int intra_op_threads)
    : own_pool_(std::make_unique<ThreadPool>(std::max(1, intra_op_threads))),
      pool_(own_pool_.get()),
      frame_(std::make_unique<Frame>()) {
  frame_->pool = std::make_shared<ValuePool>();
}
ExecContext::ExecContext(ThreadPool* threads, std::shared_ptr<ValuePool> values)
    : pool_(threads), frame_(std::make_unique<Frame>()) {
  frame_->pool = values != nullptr ? std::move(values) : std::make_shared<ValuePool>();
}
ExecContext::~ExecContext() = default;

absl::Status ExecContext::Prepare(std::shared_ptr<const Plan> plan, int64_t rows) {
  Frame& frame = *frame_;
  if (frame.plan == plan && frame.rows == rows) {
    frame.Unbind();
    return absl::OkStatus();
  }
  const BudgetScope scope(Budget::Current() != nullptr ? Budget::Current() : &budget_);
  if (frame.plan != plan) frame.nested.clear();  // their memory counts as the run's
  FLOE_RETURN_IF_ERROR(frame.Grow(*plan, rows));
  frame.plan = std::move(plan);
  frame.rows = rows;
  frame.Materialise();
  return absl::OkStatus();
}

bool ExecContext::PrepareAgain(absl::Span<const TensorView> inputs) {
  if (!frame_->Fits(inputs)) return false;
  frame_->Unbind();
  return true;
}

const TensorView& ExecContext::Input(int i) const {
  return frame_->slots[frame_->plan->input_slot(i)];
}
const TensorView& ExecContext::Output(int i) const {
  return frame_->slots[frame_->plan->output_slot(i)];
}

void ExecContext::BindInput(int i, const void* data, bool consumable) {
  frame_->bound[i] = true;
  frame_->consumable[i] = consumable;
  frame_->PointInput(i, const_cast<void*>(data));
}

absl::Status ExecContext::Run() {
  const ScopedFlushDenormals flush;
  if (Budget::Current() != nullptr) return frame_->Run(pool_);
  budget_.Restart();
  const BudgetScope scope(&budget_);
  return CatchOutOfMemory([&] { return frame_->Run(pool_); });
}

size_t ExecContext::pool_bytes() const { return frame_->pool->held_bytes(); }

size_t ExecContext::Trim() {
  frame_->Drop();
  return frame_->pool->Trim();
}

size_t ExecContext::arena_bytes() const {
  return frame_->arena == nullptr ? 0 : frame_->arena->size();
}

}  // namespace floe
