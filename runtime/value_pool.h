// ValuePool: memory for values whose size the run settles. Freed values leave their memory to the
// next ones of about their size. Blocks of other sizes make room, so that a pool holds no more than
// was in use at one time. What it holds is taken from the thread's MemoryBudget, which has it
// trimmed when short.
#pragma once

#include <atomic>
#include <memory>

#include "absl/status/statusor.h"
#include "model/tensor.h"
#include "runtime/memory_fill.h"

namespace floe {

// Threading: any thread may allocate, and tensors may die on any thread, also after the pool.
class ValuePool {
 public:
  ValuePool();
  ~ValuePool();
  ValuePool(const ValuePool&) = delete;
  ValuePool& operator=(const ValuePool&) = delete;

  // Uninitialised numbers, empty strings or null handles. INVALID_ARGUMENT for an impossible shape,
  // RESOURCE_EXHAUSTED when memory is short.
  absl::StatusOr<Tensor> Allocate(DType dtype, const Shape& shape);

  absl::StatusOr<Tensor> Copy(const TensorView& view);

  size_t held_bytes() const;  // in use or kept for later, the rounding to block sizes included
  size_t used_bytes() const;  // in use
  // What numbers are filled with before they are handed out; for tests (ExecContext::CheckMemory).
  void set_fill(MemoryFill fill) { fill_.store(fill, std::memory_order_relaxed); }
  MemoryFill fill() const { return fill_.load(std::memory_order_relaxed); }

  // Gives back what is not in use. Returns how many bytes.
  size_t Trim();

 private:
  class Core;
  std::shared_ptr<Core> core_;  // tensors hold it too
  std::atomic<MemoryFill> fill_{MemoryFill::kNone};
};

}  // namespace floe
