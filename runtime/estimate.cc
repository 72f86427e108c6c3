#include "runtime/estimate.h"

#include <algorithm>

#include "kernels/step_cost.h"
#include "runtime/line_windows.h"

namespace floe {
namespace {

using CallTypes = absl::InlinedVector<TensorType, 8>;

double MicrosOf(const Plan& plan, const Step& step, const CallTypes& in, const CallTypes& out,
                int64_t rows) {
  StepCall call{plan.graph().node(step.node), step.kernel, in, out, rows};
  for (size_t i = 0; i < std::min<size_t>(64, step.inputs.size()); ++i) {
    const Slot& slot = plan.slots()[step.inputs[i]];
    const bool packed = step.kernel != nullptr && !step.kernel->NeedsInput(static_cast<int>(i));
    if (packed || plan.slots()[slot.root].home == Slot::Home::kConstant)
      call.constants |= uint64_t{1} << i;
  }
  call.weights_stay_cached = plan.weights_stay_cached();
  call.dynamic = step.dynamic;
  call.bytes_in_place = BytesInPlace(plan.slots(), step, rows);
  return EstimateMicros(call);
}

CallTypes TypesOf(const Plan& plan, const std::vector<int>& slots) {
  CallTypes types;
  for (const int slot : slots) types.push_back(plan.slots()[slot].type);
  return types;
}

CallTypes TypesOf(absl::Span<const TensorView> views, const std::vector<int>& slots) {
  CallTypes types;
  for (const int slot : slots) types.push_back({views[slot].dtype, SymShape(views[slot].shape)});
  return types;
}

}  // namespace

double StepMicros(const ObservedStep& observed) {
  const Step& step = observed.plan->steps()[observed.step];
  return MicrosOf(*observed.plan, step, TypesOf(observed.slots, step.inputs),
                  TypesOf(observed.slots, step.outputs), observed.rows);
}

bool WorkIsKnown(const Plan& plan) {
  return !plan.has_dynamic_steps() &&
         std::none_of(plan.steps().begin(), plan.steps().end(),
                      [](const Step& step) { return step.programs != nullptr; });
}

double RunMicros(const Plan& plan, int64_t rows) {
  double micros = 0;
  for (const Step& step : plan.steps())
    micros += MicrosOf(plan, step, TypesOf(plan, step.inputs), TypesOf(plan, step.outputs), rows);
  return micros;
}

}  // namespace floe
