// FrameMemory: where the values of a run lie, and what each slot of its plan shows.
#pragma once

#include <memory>
#include <vector>

#include "runtime/arena.h"
#include "runtime/plan.h"
#include "runtime/run_values.h"
#include "runtime/slot_views.h"

namespace floe {

// Has a plan and rows, or none and no inputs. Only its methods change what it holds. One class: all
// parts of a frame see its memory through it. Threading: one thread.
class FrameMemory {
 public:
  explicit FrameMemory(std::shared_ptr<ValuePool> pool) : values_(std::move(pool)) {}

  // Makes (plan, rows) current; all inputs are to be fed. RESOURCE_EXHAUSTED when the memory that
  // it needs is short; then no plan is.
  absl::Status Prepare(std::shared_ptr<const Plan> plan, int64_t rows);
  // Frees every value, and an arena that is more than small: no plan is current without it.
  void Drop();
  // No plan is current.
  void Forget();

  // No input is fed, and all would be read from the arena.
  void Unbind();
  void Feed(int i) { inputs_[i].fed = true; }
  // Input i will be fed there instead of in the arena.
  void StageInput(int i, void* memory);
  // Reads input i from `data`; null: it has no elements.
  void BindInput(int i, const void* data, bool may_take);
  // INTERNAL unless every input is fed: the memory of another one has what a request left there.
  absl::Status CheckFed() const;
  // Bit k: the step may take over its input k: a value of the run itself at its last read, or the
  // caller's if it said so.
  uint64_t Donatable(const Step& step) const;

  // Memory for output k, which its slot then shows: its place in the arena where that is planned,
  // and of its own otherwise. INTERNAL when the plan says another shape.
  absl::Status Place(const Step& step, size_t k, DType dtype, const Shape& shape);
  void Set(int slot, const TensorView& view) { views_.Set(slot, view); }

  const std::shared_ptr<const Plan>& plan() const { return plan_; }  // null: none is current
  int64_t rows() const { return rows_; }                             // -1: none
  const SlotViews& views() const { return views_; }
  const Arena& arena() const { return arena_; }
  const RunValues& values() const { return values_; }
  RunValues& values() { return values_; }

 private:
  struct Input {
    bool fed = false;        // in this run
    bool bound = false;      // lies elsewhere than in the arena
    bool donatable = false;  // which its last reader may take over
  };

  std::shared_ptr<const Plan> plan_;
  int64_t rows_ = -1;
  Arena arena_;
  SlotViews views_;
  RunValues values_;
  std::vector<Input> inputs_;
};

}  // namespace floe
