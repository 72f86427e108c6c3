#include "runtime/island_run.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/aligned_buffer.h"
#include "base/status.h"
#include "kernels/cuda/device_kernel.h"
#include "model/op_def.h"
#include "runtime/analyze.h"
#include "runtime/slot_views.h"

namespace floe {
namespace {

const cuda::DeviceKernel* DeviceKernelOf(const Step& step) {
  return dynamic_cast<const cuda::DeviceKernel*>(step.kernel);
}

bool IsConstantSlot(const Slot& slot) { return slot.home == Slot::Home::kConstant; }

// Whether the step needs the bytes of its input k, and not only its shape.
bool ReadsBytes(const Plan& plan, const Step& step, size_t k) {
  const uint64_t read_by_inference = plan.graph().node(step.node).op->shape_inputs;
  if (k < 64 && (read_by_inference >> k & 1) != 0) return false;
  return step.kernel == nullptr || step.kernel->NeedsInput(static_cast<int>(k));
}

bool IsOutput(const Plan& plan, int root) {
  for (size_t k = 0; k < plan.output_types().size(); ++k) {
    if (plan.slots()[plan.output_slot(static_cast<int>(k))].root == root) return true;
  }
  return false;
}

// Whether a step, or who reads the outputs, needs the bytes of this root.
bool IsRead(const Plan& plan, int root) {
  for (const Step& step : plan.steps()) {
    for (size_t k = 0; k < step.inputs.size(); ++k) {
      if (plan.slots()[step.inputs[k]].root == root && ReadsBytes(plan, step, k)) return true;
    }
  }
  return IsOutput(plan, root);
}

bool IsCounted(const Plan& plan, int root) {
  return plan.slots()[root].per_row.valid() && IsRead(plan, root);
}

bool RowsComeFirst(const TensorType& type) {
  for (int d = 1; d < type.shape.rank(); ++d) {
    if (type.shape.dim(d).has_rows()) return false;
  }
  return true;
}

// Whether each output has the rows, one by one, or depends on none of them, as a loop's counter.
bool OutputsKeepRows(const Plan& plan) {
  std::vector<ValueInfo> inputs;
  std::vector<RowMark> marks;
  for (const TensorType& type : plan.input_types()) {
    inputs.push_back({type, {}, {}});
    const bool rows = type.shape.rank() > 0 && type.shape.dim(0).has_rows();
    marks.push_back(rows ? RowMark::kRows : RowMark::kConstant);
  }
  const auto analysis = Analyze(plan.graph(), inputs, marks, {});
  if (!analysis.ok()) return false;
  return std::all_of(plan.graph().outputs.begin(), plan.graph().outputs.end(), [&](ValueRef out) {
    const SymShape& shape = analysis->at(out).type.shape;
    if (analysis->mark(out) == RowMark::kConstant) return shape.concrete();
    return analysis->mark(out) == RowMark::kRows && shape.rank() > 0 && shape.dim(0) == Dim::Rows();
  });
}

size_t BytesAt(const TensorType& type, int64_t rows) {
  return static_cast<size_t>(type.shape.At(rows).elements()) * DTypeSize(type.dtype);
}

// What crosses, in order: inputs, then outputs. `stage` gets the bytes of each; 0: it does not.
template <typename F>
void ForEachStaged(const Plan& plan, int64_t rows, F stage) {
  for (size_t i = 0; i < plan.input_types().size(); ++i) {
    const int slot = plan.input_slot(static_cast<int>(i));
    stage(IsRead(plan, slot) ? BytesAt(plan.input_types()[i], rows) : 0);
  }
  for (size_t k = 0; k < plan.output_types().size(); ++k) {
    const Slot& slot = plan.slots()[plan.output_slot(static_cast<int>(k))];
    const bool known = IsConstantSlot(slot) || plan.slots()[slot.root].per_row.valid();
    stage(known ? 0 : BytesAt(slot.type, rows));
  }
}

}  // namespace

bool IslandRun::Covers(const Plan& plan) {
  return !plan.has_dynamic_steps() &&
         std::all_of(plan.steps().begin(), plan.steps().end(),
                     [](const Step& step) { return DeviceKernelOf(step) != nullptr; });
}

bool IslandRun::RowsAreSeparate(const Plan& plan) {
  if (!plan.has_rows()) return false;
  for (size_t s = 0; s < plan.slots().size(); ++s) {
    if (IsCounted(plan, static_cast<int>(s))) return false;
  }
  if (!std::all_of(plan.input_types().begin(), plan.input_types().end(), RowsComeFirst) ||
      !std::all_of(plan.output_types().begin(), plan.output_types().end(), RowsComeFirst))
    return false;
  return OutputsKeepRows(plan);
}

size_t IslandRun::ArenaBytes(const Plan& plan, int64_t rows) {
  return AlignUp(static_cast<size_t>(std::max<int64_t>(plan.ArenaBytes(rows), 1)));
}

size_t IslandRun::StagingBytes(const Plan& plan, int64_t rows) {
  size_t total = kAlignment;  // of nothing there is an address too
  ForEachStaged(plan, rows, [&](size_t bytes) { total += AlignUp(bytes); });
  return total;
}

absl::StatusOr<std::shared_ptr<const IslandConstants>> IslandRun::MakeConstants(
    const Plan& plan, const DeviceWeights& weights) {
  std::vector<Tensor> known;
  for (const Step& step : plan.steps()) {
    for (const int in : step.inputs) {
      const Slot& slot = plan.slots()[in];
      if (IsConstantSlot(slot) && slot.constant.data() != nullptr &&
          weights.Find(slot.constant.data()) == nullptr)
        known.push_back(slot.constant);
    }
  }
  auto constants = std::make_shared<IslandConstants>();
  FLOE_ASSIGN_OR_RETURN(constants->buffer,
                        UploadTensors(weights.device(), known, &constants->places));
  return constants;
}

absl::StatusOr<std::unique_ptr<IslandRun>> IslandRun::Make(Parts parts, int64_t rows) {
  std::unique_ptr<IslandRun> made(new IslandRun(std::move(parts), rows));
  made->PlaceStaging();
  FLOE_RETURN_IF_ERROR(made->UploadCounted());
  std::vector<cuda::DevicePort> inputs, outputs;
  made->AddPorts(&inputs, &outputs);
  const std::vector<cuda::Launch> launches = made->Launches();
  FLOE_ASSIGN_OR_RETURN(made->run_,
                        cuda::DeviceRun::Make(*made->parts_.place.stream,
                                              {made->parts_.name, launches, inputs, outputs}));
  return made;
}

void IslandRun::PlaceStaging() {
  std::byte* at = parts_.place.staging->data() + parts_.place.staging_at;
  const size_t inputs = parts_.plan->input_types().size();
  ForEachStaged(*parts_.plan, rows_, [&](size_t bytes) {
    std::vector<std::byte*>& staged = staged_.size() < inputs ? staged_ : outputs_;
    staged.push_back(bytes == 0 ? nullptr : at);
    at += AlignUp(bytes);
  });
}

absl::Status IslandRun::UploadCounted() {
  std::vector<Tensor> values;
  for (size_t s = 0; s < parts_.plan->slots().size(); ++s) {
    if (!IsCounted(*parts_.plan, static_cast<int>(s))) continue;
    const Slot& slot = parts_.plan->slots()[s];
    Tensor value = Tensor::Allocate(slot.type.dtype, slot.type.shape.At(rows_));
    WriteCounted(slot, rows_, {value.dtype(), value.shape(), value.mutable_data()});
    values.push_back(value);
    counted_.emplace(static_cast<int>(s), std::move(value));
  }
  FLOE_ASSIGN_OR_RETURN(counted_buffer_,
                        UploadTensors(parts_.weights->device(), values, &counted_places_));
  return absl::OkStatus();
}

// With an address of the device. Null: a constant that its kernels have packed.
TensorView IslandRun::ViewOf(int s) const {
  const Slot& slot = parts_.plan->slots()[s];
  TensorView view{slot.type.dtype, slot.type.shape.At(rows_), nullptr};
  const auto find = [](const std::map<const void*, std::byte*>& places, const void* on_host) {
    const auto found = places.find(on_host);
    return found == places.end() ? nullptr : found->second;
  };
  if (IsConstantSlot(slot)) {
    const void* const on_host = slot.constant.data();
    std::byte* const own = find(parts_.constants->places, on_host);
    view.data = own != nullptr ? own : parts_.weights->Find(on_host);
    return view;
  }
  if (const auto counted = counted_.find(slot.root); counted != counted_.end()) {
    view.data = find(counted_places_, counted->second.data());
    return view;
  }
  const Slot& root = parts_.plan->slots()[slot.root];
  view.data =
      parts_.place.arena->data() + root.offset.At(std::max<int64_t>(rows_, 1)) + slot.window_offset;
  return view;
}

void IslandRun::AddPorts(std::vector<cuda::DevicePort>* in,
                         std::vector<cuda::DevicePort>* out) const {
  const auto port = [this](int slot, std::byte* host) {
    const TensorView view = ViewOf(slot);
    return cuda::DevicePort{host, view.as<std::byte>(), view.bytes()};
  };
  for (size_t i = 0; i < staged_.size(); ++i) {
    if (staged_[i] != nullptr)
      in->push_back(port(parts_.plan->input_slot(static_cast<int>(i)), staged_[i]));
  }
  for (size_t k = 0; k < outputs_.size(); ++k) {
    if (outputs_[k] != nullptr)
      out->push_back(port(parts_.plan->output_slot(static_cast<int>(k)), outputs_[k]));
  }
}

std::vector<cuda::Launch> IslandRun::Launches() const {
  std::vector<cuda::Launch> launches;
  for (const Step& step : parts_.plan->steps()) {
    const cuda::DeviceKernel& kernel = *DeviceKernelOf(step);
    std::vector<TensorView> inputs, outputs;
    std::vector<const std::byte*> weights;
    for (const int in : step.inputs) inputs.push_back(ViewOf(in));
    for (const int out : step.outputs) outputs.push_back(ViewOf(out));
    for (const Tensor& weight : kernel.Weights())
      weights.push_back(parts_.weights->Find(weight.data()));
    cuda::DeviceAddresses addresses;
    addresses.inputs = inputs;
    addresses.outputs = outputs;
    addresses.line_strides = step.line_strides;
    addresses.weights = weights;
    const std::optional<int64_t> scratch = parts_.plan->ScratchOffset(step, rows_);
    if (scratch.has_value()) addresses.scratch = parts_.place.arena->data() + *scratch;
    kernel.Emit(addresses, &launches);
  }
  return launches;
}

absl::Status IslandRun::Run(absl::Span<const TensorView> inputs, int64_t rows) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (staged_[i] == nullptr) continue;
    const size_t bytes = inputs[i].bytes();
    if (bytes != 0 && inputs[i].data != staged_[i]) std::memcpy(staged_[i], inputs[i].data, bytes);
    if (rows < rows_)
      std::memset(staged_[i] + bytes, 0, BytesAt(parts_.plan->input_types()[i], rows_) - bytes);
  }
  return run_->Run(*parts_.place.stream);
}

TensorView IslandRun::Output(size_t k, int64_t rows) const {
  const Slot& slot = parts_.plan->slots()[parts_.plan->output_slot(static_cast<int>(k))];
  if (IsConstantSlot(slot)) return slot.constant.view();
  TensorView view{slot.type.dtype, slot.type.shape.At(rows), outputs_[k]};
  if (const auto counted = counted_.find(slot.root); counted != counted_.end())
    view.data = const_cast<void*>(counted->second.data());
  return view;
}

}  // namespace floe
