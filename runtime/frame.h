// Frame: a plan made runnable at one number of rows. The inside of ExecContext.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/budget.h"
#include "base/memory_budget.h"
#include "base/thread_pool.h"
#include "runtime/plan.h"
#include "runtime/value_pool.h"

namespace floe {

class RunObserver;

// A subgraph is a frame inside that of its caller: they share values, memory and observer.
// Threading: one thread at a time, like the context that owns it.
struct Frame {
  explicit Frame(std::shared_ptr<ValuePool> values) : pool(std::move(values)) {}

  std::shared_ptr<const Plan> plan;
  std::atomic<const Node*> doing{nullptr};  // of the step under way
  RunObserver* observer = nullptr;          // not owned; handed on to nested frames
  int64_t rows = -1;
  MemoryShare arena_share;
  AlignedBuffer arena;
  MemoryCharge arena_charge;
  std::vector<TensorView> slots;    // what each slot shows now
  std::vector<TensorView> args;     // of each step: inputs, then outputs
  std::vector<bool> bound;          // input i reads the caller's memory
  std::vector<bool> fed;            // input i was given to this run
  std::vector<bool> donatable;      // and may be taken over by its last reader
  std::shared_ptr<ValuePool> pool;  // shared with the frames of subgraphs
  std::vector<Tensor> dynamic;      // by slot: values whose size the run settles, until last read
  Tensor dynamic_scratch;           // the most that a step with such values has needed
  // By step, for control flow: frames of its subgraphs. A While has two for its body, used in turn,
  // so that one iteration's outputs are the next one's inputs without a copy.
  struct Nested {
    std::vector<std::unique_ptr<Frame>> frames;
    std::vector<ListTypePtr> lists;  // what is known of those it is handed, at `lists_rows`
    int64_t lists_rows = -1;
    std::vector<Tensor> kept;  // loop variables that moved to another place in their list
  };
  std::vector<Nested> nested;
  // By step, for steps whose shapes the run settles: what came of the shapes that came in last. In
  // a loop they are the same iteration after iteration.
  struct Settled {
    std::vector<Shape> inputs;
    std::vector<TensorView> outputs;  // without data
    int64_t scratch_bytes = 0;
    bool needs_values = false;  // shapes alone do not tell the outputs'
  };
  std::vector<Settled> settled;

  // As ExecContext's; what is short of memory is said to the thread's budget.
  absl::Status Prepare(std::shared_ptr<const Plan> next, int64_t next_rows);
  // Prepares the plan at hand once more and returns true, when it was bound to inputs of these
  // shapes, and to these lists; saves looking the plan up.
  bool PrepareAgain(absl::Span<const TensorView> inputs, absl::Span<const ListTypePtr> lists);
  void BindInput(int i, const void* data, bool may_take);
  const TensorView& Output(int i) const { return slots[plan->output_slots_[i]]; }
  // Whether handles in output i may be moved out: not from a constant, which all runs share.
  bool MayTakeOutput(int i) const { return !plan->IsConstantOutput(i); }
  // No input is fed, and all would be read from the arena.
  void Unbind();
  int64_t SizedRows() const { return rows > 1 ? rows : 1; }  // that the arena is laid out for
  void* Address(const AffineBytes& offset) const { return arena.data() + offset.At(SizedRows()); }
  absl::Status Run(ThreadPool* threads);
  // Drops every value and subgraph's frame, and an arena that is more than small.
  void Drop();
  // No plan is current: its memory is lost, or is to be made again.
  void Forget();

 private:
  absl::Status Grow(const Plan& next, int64_t next_rows);
  void Materialise();
  void PointInput(int i, void* data);
  absl::Status RunSteps(ThreadPool* threads);
  void Show(const Slot& slot, TensorView* view) const;
  std::byte* Scratch(const Step& step) const;
  void WriteAffine(int slot);
  absl::Status RunStep(const Step& step, size_t s, ThreadPool* threads);
  absl::Status RunObserved(const Step& step, size_t s, ThreadPool* threads);
  uint64_t Donatable(const Step& step) const;
  void Release(const Step& step);
  absl::Status RunDynamic(const Step& step, size_t s, ThreadPool* threads);
  absl::Status RunAllocating(const Step& step, absl::Span<const TensorView> inputs,
                             ThreadPool* threads);
  bool StillHolds(const Settled& last, absl::Span<const TensorView> inputs) const;
  absl::Status Settle(const Step& step, absl::Span<const TensorView> inputs, Settled* result) const;
  absl::Status PayForStrings(const Step& step);
  absl::Status GrowScratch(int64_t bytes);
  absl::Status Place(const Step& step, size_t k, DType dtype, const Shape& shape);
  absl::Status Give(const Step& step, size_t k, const TensorView& value, bool take);

  // runtime/frame_check.cc, for tests and debug builds. CheckStep: INTERNAL unless every index of
  // the step names something, and its memory lies where the plan says and apart from what it must
  // not touch. FillOutputs: what it is to write. CheckOutputs: INTERNAL when it wrote beyond them.
  // RunKernel: runs it on filled scratch; INTERNAL when it wrote beyond that.
  absl::Status CheckStep(const Step& step) const;
  absl::Status CheckValues(const Step& step, absl::Span<const TensorView> views) const;
  absl::Status CheckScratch(const Step& step, absl::Span<const TensorView> views) const;
  void FillOutputs(const Step& step) const;
  absl::Status CheckOutputs(const Step& step) const;
  absl::Status RunKernel(const Step& step, const KernelContext& context,
                         size_t scratch_bytes) const;

  // runtime/run_control.cc
  Frame& FrameOf(Nested& of_step, size_t i) const;
  void FindLists(absl::Span<const int> handed, Nested* of_step) const;
  absl::Status RunControl(const Step& step, size_t s, absl::Span<const TensorView> inputs,
                          ThreadPool* threads);
  absl::Status RunBranch(const Step& step, Nested& of_step, absl::Span<const TensorView> inputs,
                         ThreadPool* threads);
  absl::Status RunWhile(const Step& step, Nested& of_step, absl::Span<const TensorView> inputs,
                        ThreadPool* threads);
};

}  // namespace floe
