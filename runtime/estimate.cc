#include "runtime/estimate.h"

#include <algorithm>
#include <optional>

#include "kernels/step_cost.h"
#include "runtime/device_cost.h"
#include "runtime/line_windows.h"
#include "runtime/nested_plan.h"

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

bool IsIsland(const Plan& plan, const Step& step) {
  return step.programs != nullptr && plan.graph().node(step.node).op->name == "OnDevice";
}

double BytesOf(const Plan& plan, absl::Span<const int> slots, int64_t rows) {
  double bytes = 0;
  for (const int s : slots) {
    const TensorType& type = plan.slots()[s].type;
    if (type.shape.known())
      bytes += static_cast<double>(type.shape.At(rows).elements()) *
               static_cast<double>(DTypeSize(type.dtype));
  }
  return bytes;
}

// Of the island's own plan, on its device.
double DeviceMicros(const Plan& plan, int64_t rows) {
  double micros = kDeviceRunMicros;
  for (size_t i = 0; i < plan.input_types().size(); ++i)
    micros += BytesOf(plan, {plan.input_slot(static_cast<int>(i))}, rows) / kCrossingBytes;
  for (size_t k = 0; k < plan.output_types().size(); ++k)
    micros += BytesOf(plan, {plan.output_slot(static_cast<int>(k))}, rows) / kCrossingBytes;
  for (const Step& step : plan.steps()) {
    const double bytes = BytesOf(plan, step.inputs, rows) + BytesOf(plan, step.outputs, rows);
    micros += kDeviceLaunchMicros +
              std::max(plan.StepFlops(step, rows) / kDeviceFlops, bytes / kDeviceBytes);
  }
  return micros;
}

struct WorkMicros {
  double host = 0, device = 0;
};

WorkMicros WorkOfRun(const Plan& plan, int64_t rows);

bool IsOnDevice(const Step& step) { return step.programs->front()->on_device() != nullptr; }

// Of an island where it is computed; nothing where only a run tells its shapes.
std::optional<WorkMicros> IslandWork(const Plan& plan, const Step& step, int64_t rows) {
  const auto nested = BindAhead(plan, step, 0, rows);
  if (!nested.ok()) return std::nullopt;
  if (IsOnDevice(step)) return WorkMicros{0, DeviceMicros(*nested->plan, nested->rows)};
  return WorkOfRun(*nested->plan, nested->rows);
}

WorkMicros WorkOfRun(const Plan& plan, int64_t rows) {
  WorkMicros sum;
  for (const Step& step : plan.steps()) {
    const auto island =
        IsIsland(plan, step) ? IslandWork(plan, step, rows) : std::optional<WorkMicros>();
    if (island.has_value()) {
      sum.host += island->host;
      sum.device += island->device;
    } else {
      sum.host +=
          MicrosOf(plan, step, TypesOf(plan, step.inputs), TypesOf(plan, step.outputs), rows);
    }
  }
  return sum;
}

WorkMicros WorkOfStep(const ObservedStep& observed) {
  const Step& step = observed.plan->steps()[observed.step];
  // The host's steps of an island are observed by themselves.
  if (IsIsland(*observed.plan, step) && IsOnDevice(step)) {
    if (const auto work = IslandWork(*observed.plan, step, observed.rows)) return *work;
  }
  return {MicrosOf(*observed.plan, step, TypesOf(observed.slots, step.inputs),
                   TypesOf(observed.slots, step.outputs), observed.rows),
          0};
}

}  // namespace

double StepMicros(const ObservedStep& observed) {
  const WorkMicros work = WorkOfStep(observed);
  return work.host + work.device;
}

void RunEstimate::StepEnds(const ObservedStep& step) {
  const WorkMicros work = WorkOfStep(step);
  host_ += work.host;
  device_ += work.device;
}

bool WorkIsKnown(const Plan& plan) {
  return !plan.has_dynamic_steps() &&
         std::all_of(plan.steps().begin(), plan.steps().end(), [&plan](const Step& step) {
           return step.programs == nullptr || IsIsland(plan, step);
         });
}

double RunMicros(const Plan& plan, int64_t rows, int threads) {
  const WorkMicros work = WorkOfRun(plan, rows);
  return work.host / threads + work.device;
}

}  // namespace floe
