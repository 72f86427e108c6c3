#include "runtime/frame.h"

#include <utility>

#include "base/budget.h"
#include "base/status.h"
#include "runtime/evaluate.h"
#include "runtime/island_runs.h"
#include "runtime/run_observer.h"
#include "runtime/step_check.h"

namespace floe {
namespace {

#ifdef NDEBUG
constexpr bool kDebugBuild = false;
#else
constexpr bool kDebugBuild = true;
#endif

bool IsIslandStep(const Plan& plan, const Step& step) {
  return step.programs != nullptr && plan.graph().node(step.node).op->name == "OnDevice";
}

// Whether the plan's only step with subgraphs is an island.
bool HasOneIslandAlone(const Plan& plan) {
  int with_programs = 0, islands = 0;
  for (const Step& step : plan.steps()) {
    with_programs += step.programs != nullptr ? 1 : 0;
    islands += IsIslandStep(plan, step) ? 1 : 0;
  }
  return with_programs == 1 && islands == 1;
}

}  // namespace

absl::Status Frame::Prepare(std::shared_ptr<const Plan> plan, int64_t rows) {
  if (memory_.plan() == plan && memory_.rows() == rows) {
    Unbind();
    return absl::OkStatus();
  }
  if (memory_.plan() != plan) control_.Clear();  // its memory counts as the run's
  dynamic_.Clear();
  if (absl::Status prepared = memory_.Prepare(std::move(plan), rows); !prepared.ok()) {
    Drop();
    return prepared;
  }
  static_.Show(memory_);
  return absl::OkStatus();
}

bool Frame::PrepareAgain(absl::Span<const TensorView> inputs, absl::Span<const ListTypePtr> lists) {
  const Plan* const plan = memory_.plan().get();
  if (plan == nullptr || inputs.size() != plan->input_types().size()) return false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (memory_.views()[plan->input_slot(static_cast<int>(i))].shape != inputs[i].shape ||
        !SameLists(plan->input_types()[i].list, lists[i]))
      return false;
  }
  Unbind();
  return true;
}

void Frame::StageInputs() {
  if (islands_->empty()) return;
  const Plan& plan = *memory_.plan();
  if (!HasOneIslandAlone(plan) && !islands_->StagesApart(plan, memory_.rows())) return;
  std::vector<bool> staged(plan.input_types().size());
  for (const Step& step : plan.steps()) {
    if (IsIslandStep(plan, step)) StageInputsOf(step, &staged);
  }
}

// What an island before it reads too, is copied on from there.
void Frame::StageInputsOf(const Step& island, std::vector<bool>* staged) {
  const Plan& plan = *memory_.plan();
  const auto nested = BindAhead(plan, island, 0, memory_.rows());
  const IslandRun* const run = nested.ok() ? islands_->FindMade(*nested) : nullptr;
  if (run == nullptr) return;
  for (size_t k = 0; k < island.inputs.size(); ++k) {
    for (size_t i = 0; i < plan.input_types().size(); ++i) {
      const int input = static_cast<int>(i);
      if (plan.input_slot(input) != island.inputs[k] || run->staged(k) == nullptr || (*staged)[i])
        continue;
      memory_.StageInput(input, run->staged(k));
      static_.ShowInput(memory_, input);
      (*staged)[i] = true;
    }
  }
}

void Frame::Unbind() {
  if (memory_.plan() == nullptr) return;
  memory_.Unbind();
  const int inputs = static_cast<int>(memory_.plan()->input_types().size());
  for (int i = 0; i < inputs; ++i) static_.ShowInput(memory_, i);
}

const TensorView& Frame::Input(int i) {
  memory_.Feed(i);
  return memory_.views()[memory_.plan()->input_slot(i)];
}

void Frame::BindInput(int i, const void* data, bool may_take) {
  memory_.BindInput(i, data, may_take);
  static_.ShowInput(memory_, i);
}

const TensorView& Frame::Output(int i) const {
  return memory_.views()[memory_.plan()->output_slot(i)];
}

void Frame::Drop() {
  control_.Clear();
  dynamic_.Clear();
  memory_.Drop();
}

size_t Frame::Trim() {
  Drop();
  Unbind();
  return memory_.values().pool()->Trim();
}

void Frame::Fill(MemoryFill fill) {
  memory_.values().pool()->set_fill(fill);
  Drop();
  memory_.Forget();
}

absl::Status Frame::Run(ThreadPool* threads) {
  if (memory_.plan() == nullptr) return absl::InternalError("no plan was prepared");
  absl::Status status = RunSteps(threads);
  doing_.store(nullptr, std::memory_order_relaxed);
  return status;
}

absl::Status Frame::RunSteps(ThreadPool* threads) {
  FLOE_RETURN_IF_ERROR(memory_.CheckFed());
  memory_.values().Clear();  // the last run's outputs make room for this one's
  const bool checked = kDebugBuild || memory_.values().pool()->fill() != MemoryFill::kNone;
  const Budget* const budget = Budget::Current();
  const Plan& plan = *memory_.plan();
  for (size_t s = 0; s < plan.steps().size(); ++s) {
    const Step& step = plan.steps()[s];
    const Node& node = plan.graph().node(step.node);
    const auto tell = [&](void (RunObserver::*what)(const ObservedStep&)) {
      if (observer_ != nullptr)
        (observer_->*what)({memory_.plan(), s, memory_.rows(), memory_.views().all()});
    };
    if (budget != nullptr) FLOE_RETURN_IF_ERROR(budget->CheckTime());
    doing_.store(&node, std::memory_order_relaxed);
    NoteNode("running", node);
    tell(&RunObserver::StepStarts);
    const absl::Status status = RunStep({step, s, memory_, threads, observer_, checked, islands_});
    tell(&RunObserver::StepEnds);
    if (!status.ok()) return AtNode(node, status);
  }
  return absl::OkStatus();
}

absl::Status Frame::RunStep(const StepRun& run) {
  if (run.checked) FLOE_RETURN_IF_ERROR(CheckStep(run));
  if (run.step.programs == nullptr && !run.step.dynamic && run.step.kernel != nullptr) {
    FLOE_RETURN_IF_ERROR(static_.Run(run));
  } else {
    const absl::Status status =
        run.step.programs != nullptr ? control_.Run(run) : dynamic_.Run(run);
    memory_.values().Release(run.plan(), run.step);
    FLOE_RETURN_IF_ERROR(status);
  }
  return run.checked ? CheckOutputs(run) : absl::OkStatus();
}

}  // namespace floe
