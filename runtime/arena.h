// Arena: the block of memory in which the values of a run lie whose sizes a plan knows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/aligned_buffer.h"
#include "base/budget.h"
#include "base/memory_budget.h"
#include "runtime/plan.h"

namespace floe {

// Paid from the memory budget of the thread, and counted by its run's. Threading: one thread.
class Arena {
 public:
  // Makes room for the plan at so many rows. A block that is large enough stays. What it held is
  // lost. RESOURCE_EXHAUSTED when the budget has less, or no machine has so much.
  absl::Status Reserve(const Plan& plan, int64_t rows);
  void Free();

  // Of a reserved arena: at least one byte, so that values without elements have an address too.
  std::byte* data() const { return block_.data(); }
  size_t size() const { return block_.size(); }
  std::byte* Address(const AffineBytes& offset) const { return data() + offset.At(rows_); }
  // Null: the step has none that was planned.
  std::byte* Scratch(const Plan& plan, const Step& step) const {
    const std::optional<int64_t> offset = plan.ScratchOffset(step, rows_);
    return offset.has_value() ? data() + *offset : nullptr;
  }
  // The rows for which offsets are laid out: one at least.
  int64_t rows() const { return rows_; }

 private:
  int64_t rows_ = 1;
  MemoryShare share_;
  AlignedBuffer block_;
  MemoryCharge charge_;
};

}  // namespace floe
