// Frame: a plan made runnable at one number of rows. The inside of ExecContext.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/thread_pool.h"
#include "runtime/control_flow.h"
#include "runtime/dynamic_steps.h"
#include "runtime/frame_memory.h"
#include "runtime/memory_fill.h"
#include "runtime/static_steps.h"

namespace floe {

class IslandRuns;

// Walks the steps of a plan. The memory and the three kinds of steps are parts of their own, each
// of which alone changes what it holds. A subgraph is a frame inside the ControlFlow of its
// caller's frame: they share a pool and an observer. One class: most methods show one of the parts
// to those who run plans. Threading: one thread at a time, like the
// context that owns it.
class Frame {
 public:
  // `islands`: of the worker, outliving the frame.
  Frame(std::shared_ptr<ValuePool> pool, IslandRuns* islands)
      : memory_(std::move(pool)), islands_(islands) {}

  // As of ExecContext. The memory comes from the budget of the thread (MemoryScope), which can then
  // explain a RESOURCE_EXHAUSTED with its figures.
  absl::Status Prepare(std::shared_ptr<const Plan> plan, int64_t rows);
  // Prepares the plan at hand once more and returns true, when it was bound to inputs of these
  // shapes, and to these lists; saves looking the plan up.
  bool PrepareAgain(absl::Span<const TensorView> inputs, absl::Span<const ListTypePtr> lists);
  // Of the plan at hand: inputs lie where its islands copy them from, where all is prepared for
  // them, and until that is prepared anew. BindInput still says otherwise.
  void StageInputs();
  // No input is fed, and none is staged.
  void Unbind();
  const TensorView& Input(int i);
  void BindInput(int i, const void* data, bool may_take);
  absl::Status Run(ThreadPool* threads);
  const TensorView& Output(int i) const;

  // Handed on to the frames of subgraphs; not owned.
  void Observe(RunObserver* observer) { observer_ = observer; }
  // Of the step under way; null: none is. Any thread.
  const Node* Doing() const { return doing_.load(std::memory_order_relaxed); }
  // Memory is filled from now on; the frame must be prepared again.
  void Fill(MemoryFill fill);

  // As of ExecContext.
  size_t Trim();
  const FrameMemory& memory() const { return memory_; }

 private:
  // Frees every value, the frames of subgraphs, and an arena that is more than small.
  void Drop();
  void StageInputsOf(const Step& island, std::vector<bool>* staged);
  absl::Status RunSteps(ThreadPool* threads);
  absl::Status RunStep(const StepRun& run);

  FrameMemory memory_;
  IslandRuns* const islands_;
  StaticSteps static_;
  DynamicSteps dynamic_;
  ControlFlow control_;
  RunObserver* observer_ = nullptr;
  std::atomic<const Node*> doing_{nullptr};
};

}  // namespace floe
