// SlotViews: what each slot of a plan shows in a run: a shape, and where its bytes are.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "model/tensor.h"
#include "runtime/arena.h"
#include "runtime/plan.h"

namespace floe {

// Writes integers that are affine in rows (Slot::per_row) to where the view lies.
void WriteCounted(const Slot& slot, int64_t rows, const TensorView& to);

// Threading: one thread.
class SlotViews {
 public:
  // What is known before a run: constants, and the places of the others in the arena, which is
  // reserved. Integers that are affine in rows are written there.
  void Show(const Plan& plan, int64_t rows, const Arena& arena);
  void Set(int slot, const TensorView& view) { views_[slot] = view; }
  // Input i, and every slot that shows its bytes, is read from there.
  void PointInput(const Plan& plan, int i, void* data);

  const TensorView& operator[](int slot) const { return views_[slot]; }
  absl::Span<const TensorView> all() const { return views_; }

 private:
  std::vector<TensorView> views_;
};

}  // namespace floe
