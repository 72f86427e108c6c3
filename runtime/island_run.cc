#include "runtime/island_run.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/aligned_buffer.h"
#include "base/status.h"
#include "kernels/cuda/device_kernel.h"
#include "model/op_def.h"

namespace floe {
namespace {

const cuda::DeviceKernel* KernelOf(const Step& step) {
  return dynamic_cast<const cuda::DeviceKernel*>(step.kernel);
}

bool IsKnown(const Slot& slot) { return slot.home == Slot::Home::kConstant; }

}  // namespace

bool IslandRun::Covers(const Plan& plan) {
  const auto covers = [&plan](const Step& step) {
    const uint64_t only_shapes = plan.graph().node(step.node).op->shape_inputs;
    for (size_t k = 0; k < step.inputs.size(); ++k) {
      const bool read = k >= 64 || (only_shapes >> k & 1) == 0;
      if (read && plan.slots()[step.inputs[k]].per_row.valid()) return false;
    }
    return KernelOf(step) != nullptr;
  };
  return !plan.has_dynamic_steps() && std::all_of(plan.steps().begin(), plan.steps().end(), covers);
}

IslandRun::IslandRun(std::shared_ptr<const Plan> plan, int64_t rows,
                     std::shared_ptr<const DeviceWeights> weights)
    : plan_(std::move(plan)), rows_(rows), weights_(std::move(weights)) {}

absl::StatusOr<std::unique_ptr<IslandRun>> IslandRun::Make(
    std::shared_ptr<const Plan> plan, int64_t rows, const std::string& name,
    std::shared_ptr<const DeviceWeights> weights) {
  std::unique_ptr<IslandRun> made(new IslandRun(std::move(plan), rows, std::move(weights)));
  FLOE_RETURN_IF_ERROR(made->Reserve());
  FLOE_RETURN_IF_ERROR(made->UploadKnown());
  std::vector<cuda::DevicePort> inputs, outputs;
  for (size_t i = 0; i < made->staged_.size(); ++i) {
    const TensorView on_device = made->ViewOf(made->plan_->input_slot(static_cast<int>(i)));
    inputs.push_back({made->staged_[i], on_device.as<std::byte>(), on_device.bytes()});
  }
  for (size_t k = 0; k < made->outputs_.size(); ++k) {
    const int slot = made->plan_->output_slot(static_cast<int>(k));
    if (IsKnown(made->plan_->slots()[slot])) continue;
    const TensorView on_device = made->ViewOf(slot);
    outputs.push_back(
        {made->outputs_[k].as<std::byte>(), on_device.as<std::byte>(), on_device.bytes()});
  }
  const std::vector<cuda::Launch> launches = made->Launches();
  FLOE_ASSIGN_OR_RETURN(made->run_,
                        cuda::DeviceRun::Make(made->stream_, {name, launches, inputs, outputs}));
  return made;
}

absl::Status IslandRun::Reserve() {
  const std::shared_ptr<cuda::Device>& device = weights_->device();
  FLOE_ASSIGN_OR_RETURN(stream_, cuda::Stream::Make(device));
  const auto bytes = static_cast<size_t>(std::max<int64_t>(plan_->ArenaBytes(rows_), 1));
  FLOE_ASSIGN_OR_RETURN(arena_, cuda::DeviceBuffer::Make(device, AlignUp(bytes)));
  std::vector<size_t> offsets;
  size_t staged = 0;
  const auto stage = [&](const TensorType& type) {
    offsets.push_back(staged);
    const auto elements = static_cast<size_t>(type.shape.At(rows_).elements());
    staged += AlignUp(elements * DTypeSize(type.dtype));
  };
  for (const TensorType& type : plan_->input_types()) stage(type);
  for (const TensorType& type : plan_->output_types()) stage(type);
  FLOE_ASSIGN_OR_RETURN(staging_, cuda::PinnedBuffer::Make(device, std::max(staged, kAlignment)));
  const size_t inputs = plan_->input_types().size();
  for (size_t i = 0; i < offsets.size(); ++i) {
    std::byte* const at = staging_.data() + offsets[i];
    if (i < inputs) {
      staged_.push_back(at);
      continue;
    }
    const TensorType& type = plan_->output_types()[i - inputs];
    const Slot& slot = plan_->slots()[plan_->output_slot(static_cast<int>(i - inputs))];
    outputs_.push_back(IsKnown(slot) ? slot.constant.view()
                                     : TensorView{type.dtype, type.shape.At(rows_), at});
  }
  return absl::OkStatus();
}

// Constants that follow from the shapes of this plan.
absl::Status IslandRun::UploadKnown() {
  std::vector<Tensor> known;
  for (const Step& step : plan_->steps()) {
    for (const int in : step.inputs) {
      const Slot& slot = plan_->slots()[in];
      if (IsKnown(slot) && slot.constant.data() != nullptr &&
          weights_->Find(slot.constant.data()) == nullptr)
        known.push_back(slot.constant);
    }
  }
  FLOE_ASSIGN_OR_RETURN(constants_, UploadTensors(weights_->device(), known, &places_));
  return absl::OkStatus();
}

// With an address of the device. Null: a constant that its kernels have packed.
TensorView IslandRun::ViewOf(int s) const {
  const Slot& slot = plan_->slots()[s];
  TensorView view{slot.type.dtype, slot.type.shape.At(rows_), nullptr};
  if (IsKnown(slot)) {
    const void* const on_host = slot.constant.data();
    const auto own = places_.find(on_host);
    view.data = own != places_.end() ? own->second : weights_->Find(on_host);
    return view;
  }
  const Slot& root = plan_->slots()[slot.root];
  view.data = arena_.data() + root.offset.At(std::max<int64_t>(rows_, 1)) + slot.window_offset;
  return view;
}

std::vector<cuda::Launch> IslandRun::Launches() const {
  std::vector<cuda::Launch> launches;
  for (const Step& step : plan_->steps()) {
    const cuda::DeviceKernel& kernel = *KernelOf(step);
    std::vector<TensorView> inputs, outputs;
    std::vector<const std::byte*> weights;
    for (const int in : step.inputs) inputs.push_back(ViewOf(in));
    for (const int out : step.outputs) outputs.push_back(ViewOf(out));
    for (const Tensor& weight : kernel.Weights()) weights.push_back(weights_->Find(weight.data()));
    cuda::DeviceAddresses addresses;
    addresses.inputs = inputs;
    addresses.outputs = outputs;
    addresses.line_strides = step.line_strides;
    addresses.weights = weights;
    const std::optional<int64_t> scratch = plan_->ScratchOffset(step, rows_);
    if (scratch.has_value()) addresses.scratch = arena_.data() + *scratch;
    kernel.Emit(addresses, &launches);
  }
  return launches;
}

absl::Status IslandRun::Run(absl::Span<const TensorView> inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].bytes() != 0) std::memcpy(staged_[i], inputs[i].data, inputs[i].bytes());
  }
  return run_->Run(stream_);
}

}  // namespace floe
