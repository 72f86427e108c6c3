#include "runtime/frame_memory.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/memory_fill.h"

namespace floe {
namespace {

constexpr size_t kSmallArena = size_t{64} << 10;  // kept by contexts that are idle

}  // namespace

absl::Status FrameMemory::Prepare(std::shared_ptr<const Plan> plan, int64_t rows) {
  values_.Clear();
  Forget();
  FLOE_RETURN_IF_ERROR(arena_.Reserve(*plan, rows));
  plan_ = std::move(plan);
  rows_ = rows;
  FillMemory(values_.pool()->fill(), arena_.data(), arena_.size());
  views_.Show(*plan_, rows_, arena_);
  values_.Resize(plan_->has_dynamic_steps() ? plan_->slots().size() : 0);
  inputs_.assign(plan_->input_types().size(), Input());
  return absl::OkStatus();
}

void FrameMemory::Drop() {
  values_.Clear();
  values_.FreeScratch();
  if (arena_.size() <= kSmallArena) return;
  Forget();
  arena_.Free();
}

void FrameMemory::Forget() {
  plan_.reset();
  rows_ = -1;
  inputs_.clear();
}

void FrameMemory::Unbind() {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const int slot = plan_->input_slot(static_cast<int>(i));
    if (inputs_[i].bound) {
      const AffineBytes& place = plan_->slots()[slot].offset;
      views_.PointInput(*plan_, static_cast<int>(i), arena_.Address(place));
    }
    inputs_[i] = Input();
    const TensorView& view = views_[slot];
    if (DTypeSize(view.dtype) != 0) FillMemory(values_.pool()->fill(), view.data, view.bytes());
  }
}

void FrameMemory::StageInput(int i, void* memory) {
  inputs_[i] = {.bound = true};
  views_.PointInput(*plan_, i, memory);
}

void FrameMemory::BindInput(int i, const void* data, bool may_take) {
  inputs_[i] = {.fed = true, .bound = true, .donatable = may_take};
  // An input without elements has an address too.
  views_.PointInput(*plan_, i, data == nullptr ? arena_.data() : const_cast<void*>(data));
}

absl::Status FrameMemory::CheckFed() const {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (!inputs_[i].fed)
      return absl::InternalError(absl::StrCat("input ", i, " of the plan was not fed"));
  }
  return absl::OkStatus();
}

uint64_t FrameMemory::Donatable(const Step& step) const {
  uint64_t mask = step.last_reads;
  for (size_t k = 0; k < step.inputs.size() && k < 64; ++k) {
    const int root = plan_->slots()[step.inputs[k]].root;
    if (plan_->slots()[root].home != Slot::Home::kInput) continue;
    int input = 0;
    while (plan_->input_slot(input) != root) ++input;
    if (!inputs_[input].donatable) mask &= ~(uint64_t{1} << k);
  }
  return mask;
}

absl::Status FrameMemory::Place(const Step& step, size_t k, DType dtype, const Shape& shape) {
  const int out = step.outputs[k];
  if (plan_->slots()[out].home == Slot::Home::kDynamic) {
    FLOE_ASSIGN_OR_RETURN(const TensorView view, values_.Allocate(out, dtype, shape));
    views_.Set(out, view);
    return absl::OkStatus();
  }
  // What the run's own sizes say must be what was planned without them: kernels write that much.
  const TensorView& planned = views_[out];
  if (planned.dtype == dtype && planned.shape == shape) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("output ", k, " has shape ", shape.ToString(),
                                          ", planned was ", planned.shape.ToString()));
}

}  // namespace floe
