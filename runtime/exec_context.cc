#include "runtime/exec_context.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/denormals.h"
#include "base/status.h"
#include "base/work_note.h"
#include "runtime/frame.h"

namespace floe {
namespace {

// The frame's budget pays where the thread has none.
class DefaultMemory {
 public:
  explicit DefaultMemory(const MemoryBudget& memory) {
    if (MemoryScope::Current() == nullptr) scope_.emplace(memory);
  }
  absl::Status Explain(const absl::Status& status) const {
    return scope_ ? scope_->Explain(status) : status;
  }

 private:
  std::optional<MemoryScope> scope_;
};

std::unique_ptr<Frame> MakeFrame(std::shared_ptr<ValuePool> values) {
  auto frame = std::make_unique<Frame>();
  if (const MemoryBudget* memory = MemoryScope::Current()) frame->memory = *memory;
  frame->pool = values != nullptr ? std::move(values) : std::make_shared<ValuePool>();
  return frame;
}

}  // namespace

ExecContext::ExecContext(int intra_op_threads)
    : own_pool_(std::make_unique<ThreadPool>(std::max(1, intra_op_threads))),
      pool_(own_pool_.get()),
      frame_(MakeFrame(nullptr)) {}
ExecContext::ExecContext(ThreadPool* threads, std::shared_ptr<ValuePool> values)
    : pool_(threads), frame_(MakeFrame(std::move(values))) {}
ExecContext::~ExecContext() = default;

absl::Status ExecContext::Prepare(std::shared_ptr<const Plan> plan, int64_t rows) {
  Frame& frame = *frame_;
  if (frame.plan == plan && frame.rows == rows) {
    frame.Unbind();
    return absl::OkStatus();
  }
  const BudgetScope scope(Budget::Current() != nullptr ? Budget::Current() : &budget_);
  if (frame.plan != plan) frame.nested.clear();  // their memory counts as the run's
  const DefaultMemory memory(frame.memory);
  if (absl::Status grown = frame.Grow(*plan, rows); !grown.ok()) {
    frame.Forget();
    return grown;
  }
  frame.plan = std::move(plan);
  frame.rows = rows;
  frame.Materialise();
  return absl::OkStatus();
}

bool ExecContext::PrepareAgain(absl::Span<const TensorView> inputs,
                               absl::Span<const ListTypePtr> lists) {
  if (!frame_->Fits(inputs, lists)) return false;
  frame_->Unbind();
  return true;
}

const TensorView& ExecContext::Input(int i) {
  frame_->fed[i] = true;
  return frame_->slots[frame_->plan->input_slot(i)];
}
const TensorView& ExecContext::Output(int i) const {
  return frame_->slots[frame_->plan->output_slot(i)];
}

bool ExecContext::MayTakeOutput(int i) const { return !frame_->plan->IsConstantOutput(i); }

void ExecContext::BindInput(int i, const void* data, bool donatable) {
  frame_->fed[i] = frame_->bound[i] = true;
  frame_->donatable[i] = donatable;
  frame_->PointInput(i, const_cast<void*>(data));
}

absl::Status ExecContext::Run() {
  const ScopedFlushDenormals flush;
  if (Budget::Current() != nullptr) return frame_->Run(pool_);
  budget_.Restart();
  const BudgetScope scope(&budget_);
  const DefaultMemory memory(frame_->memory);
  absl::Status status = memory.Explain(CatchOutOfMemory([&] { return frame_->Run(pool_); }));
  if (WorkNote* const note = WorkNote::Current(); note != nullptr && status.ok()) note->Do("");
  return status;
}

void ExecContext::Observe(RunObserver* observer) { frame_->observer = observer; }

void ExecContext::CheckMemory(MemoryFill fill) {
  frame_->pool->set_fill(fill);
  frame_->Forget();
}

const Node* ExecContext::Doing() const { return frame_->doing.load(std::memory_order_relaxed); }

size_t ExecContext::pool_bytes() const { return frame_->pool->held_bytes(); }

size_t ExecContext::Trim() {
  frame_->Drop();
  if (frame_->plan != nullptr) frame_->Unbind();
  return frame_->pool->Trim();
}

size_t ExecContext::arena_bytes() const {
  return frame_->arena == nullptr ? 0 : frame_->arena->size();
}

}  // namespace floe
