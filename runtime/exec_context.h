// ExecContext: the memory and threads one worker runs plans with.
#pragma once

#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "base/budget.h"
#include "base/thread_pool.h"
#include "kernels/device.h"
#include "model/tensor.h"

namespace floe {

class Plan;
class ValuePool;
struct Frame;

// Threading: used by one thread at a time, never shared. Grows its arena to the largest plan and
// rows it has seen; a repeated (plan, rows) allocates nothing.
class ExecContext {
 public:
  explicit ExecContext(int intra_op_threads = 1);
  // Threads borrowed, outliving the context; `values` shared by contexts of one thread, null: own.
  explicit ExecContext(ThreadPool* threads, std::shared_ptr<ValuePool> values = nullptr);
  ~ExecContext();

  // Makes (plan, rows) current: afterwards Input() may be written and Run() called. The plan must
  // outlive its use here. rows >= 1 for plans with rows (0 rows: RESOURCE limits and empty outputs
  // are handled); RESOURCE_EXHAUSTED when memory is short.
  absl::Status Prepare(std::shared_ptr<const Plan> plan, int64_t rows);

  // Makes the current plan ready to be run once more and returns true, when it was bound to inputs
  // of these shapes; saves looking the plan up.
  bool PrepareAgain(absl::Span<const TensorView> inputs);

  // The memory of input i, to be filled by the caller (rows * bytes per row).
  const TensorView& Input(int i) const;
  // Reads input i from `data` instead: aligned for its dtype, valid until the outputs have been
  // read, never written. `consumable`: handles in it may be moved out by their last reader.
  void BindInput(int i, const void* data, bool consumable = false);
  // CANCELLED, DEADLINE_EXCEEDED or RESOURCE_EXHAUSTED as budget() says, between two steps.
  absl::Status Run();
  // What a run may use; set between runs. Inside another run, as a subgraph, that one's counts.
  Budget& budget() { return budget_; }
  // Valid until the next Prepare or Run.
  const TensorView& Output(int i) const;

  size_t arena_bytes() const;
  // Memory of values whose size a run settles; kept at its high water, so that runs like those
  // before need no more.
  size_t pool_bytes() const;
  // Gives that memory back, for a context that will be idle; the arena stays. Outputs are gone,
  // and before the next Run inputs must be bound or written again. Returns how many bytes.
  size_t Trim();
  ThreadPool& pool() { return *pool_; }

 private:
  std::unique_ptr<ThreadPool> own_pool_;
  ThreadPool* pool_;
  Budget budget_;
  std::unique_ptr<Frame> frame_;
};

}  // namespace floe
