#include "runtime/run_values.h"

#include <utility>

#include "base/status.h"
#include "runtime/evaluate.h"

namespace floe {

void RunValues::Resize(size_t slots) {
  values_.clear();
  values_.resize(slots);
}

void RunValues::Clear() {
  for (Tensor& value : values_) value = Tensor();
}

absl::StatusOr<TensorView> RunValues::Allocate(int slot, DType dtype, const Shape& shape) {
  FLOE_ASSIGN_OR_RETURN(values_[slot], pool_->Allocate(dtype, shape));
  return values_[slot].view();
}

TensorView RunValues::Hold(int slot, Tensor value) {
  values_[slot] = std::move(value);
  return values_[slot].view();
}

absl::Status RunValues::PayForStrings(const std::vector<int>& slots) {
  for (const int slot : slots) {
    if (!values_[slot].valid()) continue;
    FLOE_ASSIGN_OR_RETURN(values_[slot], WithPaidStrings(std::move(values_[slot])));
  }
  return absl::OkStatus();
}

void RunValues::Release(const Plan& plan, const Step& step) {
  for (size_t k = 0; k < step.inputs.size() && k < 64; ++k) {
    const int root = plan.slots()[step.inputs[k]].root;
    if ((step.last_reads >> k & 1) != 0 && plan.slots()[root].home == Slot::Home::kDynamic)
      values_[root] = Tensor();
  }
}

absl::StatusOr<std::byte*> RunValues::Scratch(int64_t bytes) {
  if (bytes > (scratch_.valid() ? scratch_.elements() : 0)) {
    scratch_ = Tensor();
    FLOE_ASSIGN_OR_RETURN(scratch_, pool_->Allocate(DType::kUInt8, Shape{bytes}));
  }
  return static_cast<std::byte*>(scratch_.mutable_data());
}

}  // namespace floe
