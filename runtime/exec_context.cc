#include "runtime/exec_context.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/denormals.h"
#include "base/status.h"
#include "base/work_note.h"
#include "runtime/frame.h"
#include "runtime/island_runs.h"

namespace floe {
namespace {

// The context's budget pays where the thread has none.
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

MemoryBudget MemoryOfThread() {
  const MemoryBudget* memory = MemoryScope::Current();
  return memory == nullptr ? MemoryBudget() : *memory;
}

}  // namespace

ExecContext::ExecContext(int intra_op_threads)
    : own_pool_(std::make_unique<ThreadPool>(std::max(1, intra_op_threads))),
      pool_(own_pool_.get()),
      memory_(MemoryOfThread()),
      islands_(std::make_unique<IslandRuns>()),
      frame_(std::make_unique<Frame>(std::make_shared<ValuePool>(), islands_.get())) {}
ExecContext::ExecContext(ThreadPool* threads)
    : pool_(threads),
      memory_(MemoryOfThread()),
      islands_(std::make_unique<IslandRuns>()),
      frame_(std::make_unique<Frame>(std::make_shared<ValuePool>(), islands_.get())) {}
ExecContext::~ExecContext() = default;

absl::Status ExecContext::Prepare(std::shared_ptr<const Plan> plan, int64_t rows) {
  const BudgetScope scope(Budget::Current() != nullptr ? Budget::Current() : &budget_);
  const DefaultMemory memory(memory_);
  FLOE_RETURN_IF_ERROR(frame_->Prepare(std::move(plan), rows));
  frame_->StageInputs();
  return absl::OkStatus();
}

absl::Status ExecContext::PrepareIslands(std::shared_ptr<const Plan> plan,
                                         absl::Span<const int64_t> rows) {
  const DefaultMemory memory(memory_);
  frame_->Unbind();
  return memory.Explain(CatchOutOfMemory([&] { return islands_->Prepare(std::move(plan), rows); }));
}

const TensorView& ExecContext::Input(int i) { return frame_->Input(i); }
const TensorView& ExecContext::Output(int i) const { return frame_->Output(i); }

void ExecContext::BindInput(int i, const void* data, bool donatable) {
  frame_->BindInput(i, data, donatable);
}

absl::Status ExecContext::Run() {
  const ScopedFlushDenormals flush;
  if (Budget::Current() != nullptr) return frame_->Run(pool_);
  budget_.Restart();
  const BudgetScope scope(&budget_);
  const DefaultMemory memory(memory_);
  absl::Status status = memory.Explain(CatchOutOfMemory([&] { return frame_->Run(pool_); }));
  if (WorkNote* const note = WorkNote::Current(); note != nullptr && status.ok()) note->Do("");
  return status;
}

void ExecContext::Observe(RunObserver* observer) { frame_->Observe(observer); }

void ExecContext::CheckMemory(MemoryFill fill) { frame_->Fill(fill); }

const Node* ExecContext::Doing() const { return frame_->Doing(); }

size_t ExecContext::pool_bytes() const { return frame_->memory().values().pool()->held_bytes(); }

size_t ExecContext::Trim() { return frame_->Trim(); }

size_t ExecContext::staging_bytes() const { return islands_->staging_bytes(); }

size_t ExecContext::arena_bytes() const { return frame_->memory().arena().size(); }

}  // namespace floe
