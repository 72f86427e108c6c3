// ExecContext: the memory and threads one worker runs plans with.
#pragma once

#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "base/budget.h"
#include "base/memory_budget.h"
#include "base/thread_pool.h"
#include "model/tensor.h"
#include "runtime/memory_fill.h"

namespace floe {

class Plan;
struct Node;
class RunObserver;
class Frame;
class IslandRuns;

// Threading: used by one thread at a time, never shared. Grows its arena to the largest plan and
// rows it has seen; a repeated (plan, rows) allocates nothing. Its memory is paid from the budget
// of the thread that made it (MemoryScope), or that runs it where that has one.
class ExecContext {
 public:
  explicit ExecContext(int intra_op_threads = 1);
  explicit ExecContext(ThreadPool* threads);  // borrowed, outliving the context
  ~ExecContext();

  // Makes (plan, rows) current and forgets the inputs: afterwards every one must be fed, by Input()
  // or BindInput(), before Run() is called, which else gives INTERNAL. The plan must outlive its
  // use here. rows >= 1 for plans with rows (0 rows: RESOURCE limits and empty outputs are
  // handled); RESOURCE_EXHAUSTED when memory is short.
  absl::Status Prepare(std::shared_ptr<const Plan> plan, int64_t rows);

  // Makes what the plan's islands need on their device for runs of so many rows: memory, and a CUDA
  // graph for each number. A run of other rows is one of the next larger number, where rows are
  // independent. Otherwise small numbers have graphs too. Null: for plans that will come, the
  // numbers alone. What Prepare made current is to
  // be prepared again. RESOURCE_EXHAUSTED when memory is short, of the device or the host; other
  // errors of the device where the host may not compute instead.
  absl::Status PrepareIslands(std::shared_ptr<const Plan> plan, absl::Span<const int64_t> rows);

  // The memory of input i, which the caller now fills (rows * bytes per row). Has no place for
  // strings: these are bound.
  const TensorView& Input(int i);
  // Reads input i from `data` instead: aligned for its dtype, valid until the outputs have been
  // read, never written. `donatable`: handles in it may be moved out by their last reader.
  void BindInput(int i, const void* data, bool donatable = false);
  // CANCELLED, DEADLINE_EXCEEDED or RESOURCE_EXHAUSTED as budget() says, between two steps.
  absl::Status Run();
  // The node at whose step a run is; null: at none. Any thread, which keeps the plan's model alive.
  const Node* Doing() const;
  // What a run may use; set between runs. Inside another run that one's counts.
  Budget& budget() { return budget_; }
  // Who is told of every step of the runs to come, those of subgraphs included; null: nobody. Set
  // between runs; not owned.
  void Observe(RunObserver* observer);
  // Valid until the next Prepare or Run.
  const TensorView& Output(int i) const;

  size_t arena_bytes() const;
  // Of the host, that devices copy from and to; kept until the end.
  size_t staging_bytes() const;
  // Memory of values whose size a run settles; kept at its high water, so that runs like those
  // before need no more.
  size_t pool_bytes() const;
  // Gives that memory back, and an arena of more than 64 KiB, for a context that will be idle.
  // Outputs are gone, and Prepare comes before the next Run. Returns how many bytes.
  size_t Trim();
  ThreadPool& pool() { return *pool_; }

  // For tests: the runs to come find arena, scratch and values of the pool filled before they write
  // them, and each step's memory is held against the plan. Run returns INTERNAL where they disagree
  // or a kernel writes beyond its memory. The context must be prepared again. Debug builds always
  // hold memory against the plan, and end the process where it disagrees.
  void CheckMemory(MemoryFill fill);

 private:
  std::unique_ptr<ThreadPool> own_pool_;
  ThreadPool* pool_;
  Budget budget_;
  MemoryBudget memory_;  // pays for the frame, where the thread has no other
  std::unique_ptr<IslandRuns> islands_;
  std::unique_ptr<Frame> frame_;
};

}  // namespace floe
