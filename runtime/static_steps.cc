#include "runtime/static_steps.h"

#include "base/status.h"
#include "runtime/step_check.h"

namespace floe {

void StaticSteps::Show(const FrameMemory& memory) {
  const Plan& plan = *memory.plan();
  args_.resize(plan.args_);
  for (const Step& step : plan.steps()) {
    TensorView* arg = args_.data() + step.first_arg;
    for (const int in : step.inputs) *arg++ = memory.views()[in];
    for (const int out : step.outputs) *arg++ = memory.views()[out];
  }
}

void StaticSteps::ShowInput(const FrameMemory& memory, int i) {
  const Plan& plan = *memory.plan();
  void* const data = memory.views()[plan.input_slot(i)].data;
  for (const int arg : plan.input_args_[i]) args_[arg].data = data;
}

absl::Status StaticSteps::Run(const StepRun& run) const {
  const Step& step = run.step;
  if (run.checked) FLOE_RETURN_IF_ERROR(CheckArguments(run, args_));
  const absl::Span<const TensorView> all(args_.data() + step.first_arg,
                                         step.inputs.size() + step.outputs.size());
  const KernelContext context{.inputs = all.first(step.inputs.size()),
                              .outputs = all.subspan(step.inputs.size()),
                              .scratch = run.memory.arena().Scratch(run.plan(), step),
                              .pool = run.threads,
                              .line_strides = step.line_strides};
  if (!run.checked) return step.kernel->Run(context);
  return RunKernelChecked(run, context, run.plan().ScratchBytes(step, run.memory.rows()));
}

}  // namespace floe
