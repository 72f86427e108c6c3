#include "runtime/dynamic_steps.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/status.h"
#include "runtime/evaluate.h"
#include "runtime/step_check.h"

namespace floe {

absl::Status DynamicSteps::Run(const StepRun& run) {
  const Step& step = run.step;
  args_.resize(std::max(args_.size(), step.inputs.size() + step.outputs.size()));
  for (size_t k = 0; k < step.inputs.size(); ++k) args_[k] = run.memory.views()[step.inputs[k]];
  const absl::Span<TensorView> args(args_.data(), step.inputs.size() + step.outputs.size());
  const absl::Span<const TensorView> inputs = args.first(step.inputs.size());
  if (run.node().op->allocates) return RunAllocating(run, inputs);
  settled_.resize(run.plan().steps().size());
  Settled& settled = settled_[run.number];
  if (!settled.HoldsFor(inputs)) FLOE_RETURN_IF_ERROR(Settle(run, inputs, &settled));
  if (!run.node().op->alias) return RunSettled(run, args, settled);
  TensorView view = settled.outputs[0];
  view.data = inputs[0].data;
  run.memory.Set(step.outputs[0], view);
  return absl::OkStatus();
}

absl::Status DynamicSteps::RunAllocating(const StepRun& run, absl::Span<const TensorView> inputs) {
  const Step& step = run.step;
  RunValues& values = run.memory.values();
  HeapOutputs outputs(values.pool().get());
  FLOE_RETURN_IF_ERROR(
      step.kernel->Run({inputs, {}, nullptr, run.threads, &outputs, run.memory.Donatable(step)}));
  if (outputs.tensors.size() < step.outputs.size())
    return absl::InternalError("the kernel left an output without memory");
  for (size_t k = 0; k < step.outputs.size(); ++k) {
    const int out = step.outputs[k];
    run.memory.Set(out, values.Hold(out, std::move(outputs.tensors[k])));
  }
  return values.PayForStrings(step.outputs);
}

absl::Status DynamicSteps::RunSettled(const StepRun& run, absl::Span<TensorView> args,
                                      const Settled& settled) {
  const Step& step = run.step;
  const absl::Span<TensorView> outputs = args.subspan(step.inputs.size());
  for (size_t k = 0; k < step.outputs.size(); ++k) {
    const TensorView& out = settled.outputs[k];
    FLOE_RETURN_IF_ERROR(run.memory.Place(step, k, out.dtype, out.shape));
    outputs[k] = run.memory.views()[step.outputs[k]];
  }
  FLOE_ASSIGN_OR_RETURN(std::byte* const scratch,
                        run.memory.values().Scratch(settled.scratch_bytes));
  const KernelContext context{
      args.first(step.inputs.size()), outputs, scratch, run.threads, nullptr,
      run.memory.Donatable(step)};
  FLOE_RETURN_IF_ERROR(run.checked ? RunKernelChecked(run, context, settled.scratch_bytes)
                                   : step.kernel->Run(context));
  return run.memory.values().PayForStrings(step.outputs);
}

bool DynamicSteps::Settled::HoldsFor(absl::Span<const TensorView> views) const {
  if (needs_values || outputs.empty() || inputs.size() != views.size()) return false;
  for (size_t k = 0; k < views.size(); ++k) {
    if (views[k].shape != inputs[k]) return false;
  }
  return true;
}

absl::Status DynamicSteps::Settle(const StepRun& run, absl::Span<const TensorView> inputs,
                                  Settled* result) {
  const Step& step = run.step;
  std::vector<ValueInfo> infos;
  for (const TensorView& view : inputs)
    infos.push_back({TensorType{view.dtype, SymShape(view.shape)}, {}, {}});
  const auto tell = [&](size_t k) {
    if (inputs[k].data != nullptr || inputs[k].elements() == 0)
      infos[k].constant = Tensor::Borrow(inputs[k].dtype, inputs[k].shape, nullptr, inputs[k].data);
  };
  const auto concrete = [](const TensorType& type) { return type.shape.concrete(); };
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (run.plan().slots()[step.inputs[k]].home == Slot::Home::kConstant) tell(k);
  }
  absl::StatusOr<Types> types = absl::UnknownError("");
  if (!result->needs_values) {
    types = InferTypes(run.node(), infos);
    result->needs_values = !types.ok() || !std::all_of(types->begin(), types->end(), concrete);
  }
  if (result->needs_values) {
    for (size_t k = 0; k < inputs.size(); ++k) tell(k);
    types = InferTypes(run.node(), infos);
    FLOE_RETURN_IF_ERROR(types.status());
  }
  result->inputs.clear();
  result->outputs.clear();
  std::vector<Shape> in_shapes, out_shapes;
  for (const TensorView& view : inputs) in_shapes.push_back(view.shape);
  for (size_t k = 0; k < step.outputs.size(); ++k) {
    const TensorType& type = (*types)[k];
    if (!concrete(type))
      return absl::InternalError(
          absl::StrCat("the shape of output ", k, " is still open: ", type.shape.ToString()));
    out_shapes.push_back(type.shape.At(run.memory.rows()));
    result->outputs.push_back({type.dtype, out_shapes.back(), nullptr});
  }
  result->scratch_bytes =
      step.kernel == nullptr ? 0 : step.kernel->ScratchBytes(in_shapes, out_shapes);
  FLOE_RETURN_IF_ERROR(CheckBlockBytes(result->scratch_bytes));
  result->inputs = std::move(in_shapes);
  return absl::OkStatus();
}

}  // namespace floe
