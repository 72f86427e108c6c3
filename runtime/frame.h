// Frame: a plan made runnable at one number of rows. The inside of ExecContext.
#pragma once

#include <memory>
#include <vector>

#include "base/budget.h"
#include "runtime/exec_context.h"
#include "runtime/plan.h"
#include "runtime/value_pool.h"

namespace floe {

// Threading: one thread at a time, like the context that owns it.
struct Frame {
  std::shared_ptr<const Plan> plan;
  int64_t rows = -1;
  std::unique_ptr<DeviceMemory> arena;
  MemoryCharge arena_charge;
  std::vector<TensorView> slots;    // what each slot shows now
  std::vector<TensorView> args;     // of each step: inputs, then outputs
  std::vector<bool> bound;          // input i reads the caller's memory
  std::vector<bool> consumable;     // and may be taken over by its last reader
  std::shared_ptr<ValuePool> pool;  // shared with the frames of subgraphs
  std::vector<Tensor> dynamic;      // by slot: values whose size the run settles, until last read
  AlignedBuffer dynamic_scratch;
  // By step, for control flow: contexts of its subgraphs. A While has two for its body, used in
  // turn, so that one round's outputs are the next one's inputs without a copy.
  struct Nested {
    std::vector<std::unique_ptr<ExecContext>> contexts;
    std::vector<Tensor> kept;  // loop variables that moved to another place in their list
  };
  std::vector<Nested> nested;
  // By step, for steps whose shapes the run settles: what came of the shapes that came in last. In
  // a loop they are the same round after round.
  struct Settled {
    std::vector<Shape> inputs;
    std::vector<TensorView> outputs;  // without data
    int64_t scratch_bytes = 0;
  };
  std::vector<Settled> settled;

  absl::Status Grow(const Plan& next, int64_t next_rows);
  void Materialise();
  void PointInput(int i, void* data);
  // Inputs read the arena again.
  void Unbind();
  // Whether the plan at hand was bound to these inputs' shapes.
  bool Fits(absl::Span<const TensorView> inputs) const;
  void* Address(const AffineBytes& offset) const {
    return arena->data() + offset.At(rows > 1 ? rows : 1);
  }
  absl::Status Run(ThreadPool* threads);
  // Drops every value and subgraph context.
  void Drop();

 private:
  void Show(const Slot& slot, TensorView* view) const;
  std::byte* Scratch(const Step& step) const;
  uint64_t Consumable(const Step& step) const;
  void Release(const Step& step);
  absl::Status RunDynamic(const Step& step, size_t s, ThreadPool* threads);
  absl::Status RunAllocating(const Step& step, absl::Span<const TensorView> inputs,
                             ThreadPool* threads);
  bool StillHolds(const Settled& last, const Step& step, absl::Span<const TensorView> inputs) const;
  absl::Status Settle(const Step& step, absl::Span<const TensorView> inputs, Settled* result) const;
  absl::Status Place(const Step& step, size_t k, DType dtype, const Shape& shape);
  absl::Status Give(const Step& step, size_t k, const TensorView& value, bool take);

  // runtime/run_control.cc
  absl::Status RunControl(const Step& step, size_t s, absl::Span<const TensorView> inputs,
                          ThreadPool* threads);
  absl::Status RunBranch(const Step& step, Nested& nested, absl::Span<const TensorView> inputs,
                         ThreadPool* threads);
  absl::Status RunWhile(const Step& step, Nested& nested, absl::Span<const TensorView> inputs,
                        ThreadPool* threads);
};

}  // namespace floe
