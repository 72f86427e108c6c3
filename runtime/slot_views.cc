#include "runtime/slot_views.h"

#include <type_traits>

namespace floe {
namespace {

TensorView ViewOf(const Plan& plan, const Slot& slot, int64_t rows, const Arena& arena) {
  const bool known = slot.type.shape.known();
  TensorView view{slot.type.dtype, known ? slot.type.shape.At(rows) : Shape(), nullptr};
  // Of a dynamic value, the step that makes it says where it lies.
  if (!known || slot.home == Slot::Home::kDynamic) return view;
  const Slot& root = plan.slots()[slot.root];
  if (slot.home == Slot::Home::kConstant) {
    view.data = const_cast<void*>(slot.constant.data());
  } else if (root.home == Slot::Home::kArena || root.home == Slot::Home::kInput) {
    view.data = arena.Address(root.offset) + slot.window_offset;
  }
  return view;
}

// constant + per_row * rows, as the dtype wraps.
template <class T>
void WriteAffine(const Slot& from, int64_t rows, T* to) {
  using U = std::make_unsigned_t<T>;
  for (int64_t i = 0; i < from.constant.elements(); ++i) {
    to[i] = static_cast<T>(static_cast<U>(from.constant.as<T>()[i]) +
                           static_cast<U>(from.per_row.as<T>()[i]) * static_cast<U>(rows));
  }
}

}  // namespace

void WriteCounted(const Slot& slot, int64_t rows, const TensorView& to) {
  if (to.dtype == DType::kInt32) {
    WriteAffine(slot, rows, to.as<int32_t>());
  } else {
    WriteAffine(slot, rows, to.as<int64_t>());
  }
}

void SlotViews::Show(const Plan& plan, int64_t rows, const Arena& arena) {
  views_.resize(plan.slots().size());
  for (size_t i = 0; i < views_.size(); ++i) views_[i] = ViewOf(plan, plan.slots()[i], rows, arena);
  for (const int slot : plan.affine_slots_) WriteCounted(plan.slots()[slot], rows, views_[slot]);
}

void SlotViews::PointInput(const Plan& plan, int i, void* data) {
  for (const int view : plan.input_views_[i]) views_[view].data = data;
}

}  // namespace floe
