#include "runtime/control_flow.h"

#include <algorithm>
#include <utility>

#include "base/budget.h"
#include "base/status.h"
#include "model/handle.h"
#include "runtime/frame.h"
#include "runtime/island_runs.h"
#include "runtime/predicate.h"

namespace floe {
namespace {

// Runs a subgraph on `inputs`, read in place; `frame` serves this program alone. `lists`: by input,
// as of BindSubgraph. `take`: bit i set when input i may be taken over.
absl::Status RunProgram(const CompiledSignature& program, Frame& frame,
                        absl::Span<const TensorView> inputs, absl::Span<const ListTypePtr> lists,
                        const std::vector<bool>& take, ThreadPool* threads) {
  FLOE_RETURN_IF_ERROR(program.refused());
  if (!frame.PrepareAgain(inputs, lists)) {
    std::vector<Shape> shapes;
    for (const TensorView& view : inputs) shapes.push_back(view.shape);
    FLOE_ASSIGN_OR_RETURN(NestedPlan nested, BindNested(program, shapes, lists));
    FLOE_RETURN_IF_ERROR(frame.Prepare(std::move(nested.plan), nested.rows));
  }
  for (size_t k = 0; k < inputs.size(); ++k)
    frame.BindInput(static_cast<int>(k), inputs[k].data, take[k]);
  return frame.Run(threads);
}

// Whether handles in output k may be moved out: not from a constant, which all runs share.
bool MayTakeOutput(const Frame& frame, size_t k) {
  return !frame.memory().plan()->IsConstantOutput(static_cast<int>(k));
}

// Copies a finished value into output k. `take`: its handles may be moved out.
absl::Status Give(const StepRun& run, size_t k, const TensorView& value, bool take) {
  FLOE_RETURN_IF_ERROR(run.memory.Place(run.step, k, value.dtype, value.shape));
  const TensorView& to = run.memory.views()[run.step.outputs[k]];
  if (take && IsHandle(value.dtype)) {
    std::move(value.as<Handle>(), value.as<Handle>() + value.elements(), to.as<Handle>());
  } else {
    CopyElements(value, to.data);
  }
  return absl::OkStatus();
}

// Bit k of `donatable`, for each of `count` inputs from `first` on.
std::vector<bool> TakenInputs(uint64_t donatable, size_t first, size_t count) {
  std::vector<bool> take(count);
  for (size_t k = 0; k < count && first + k < 64; ++k)
    take[k] = (donatable >> (first + k) & 1) != 0;
  return take;
}

// What a While hands from one iteration to the next: its variables, and which may be taken over.
struct Variables {
  std::vector<TensorView> views;
  std::vector<bool> take;

  // Those that iteration number `iteration` of the body gave.
  absl::Status Advance(const Frame& body, int64_t iteration, ValuePool& pool,
                       std::vector<Tensor>* kept);
};

absl::Status Variables::Advance(const Frame& body, int64_t iteration, ValuePool& pool,
                                std::vector<Tensor>* kept) {
  const std::vector<TensorView> before = views;
  for (size_t k = 0; k < views.size(); ++k) {
    const TensorView& value = body.Output(static_cast<int>(k));
    const auto same = [&](const TensorView& v) {
      return v.data == value.data && v.data != nullptr;
    };
    if (same(before[k])) {  // passed on in place
      views[k].shape = value.shape;
      continue;
    }
    // A value that came in elsewhere, or that another variable shows too, needs memory of its own:
    // the next iteration but one writes where it is now.
    const bool shared = std::any_of(before.begin(), before.end(), same) ||
                        std::any_of(views.begin(), views.begin() + k, same);
    views[k] = value;
    if (shared) {
      Tensor& copy = (*kept)[2 * k + iteration % 2];
      FLOE_ASSIGN_OR_RETURN(copy, pool.Copy(value));
      views[k] = copy.view();
    }
    take[k] = shared || MayTakeOutput(body, k);
  }
  return absl::OkStatus();
}

}  // namespace

ControlFlow::ControlFlow() = default;
ControlFlow::~ControlFlow() = default;

void ControlFlow::Clear() { nested_.clear(); }

absl::Status ControlFlow::Run(const StepRun& run) {
  nested_.resize(run.plan().steps().size());
  Nested* const nested = &nested_[run.number];
  nested->inputs.clear();
  for (const int in : run.step.inputs) nested->inputs.push_back(run.memory.views()[in]);
  if (HasPredicate(run.node())) return RunBranch(run, nested);
  return run.node().op->name == "While" ? RunWhile(run, nested) : RunIsland(run, nested);
}

Frame& ControlFlow::FrameOf(const StepRun& run, size_t i, Nested* nested) {
  if (nested->frames.size() <= i) nested->frames.resize(i + 1);
  std::unique_ptr<Frame>& frame = nested->frames[i];
  if (frame == nullptr) frame = std::make_unique<Frame>(run.memory.values().pool(), run.islands);
  frame->Observe(run.observer);
  return *frame;
}

void ControlFlow::FindLists(const StepRun& run, Nested* nested) {
  const int64_t rows = run.memory.rows();
  if (nested->lists_rows == rows) return;
  nested->lists = ListsAt(run.plan(), HandedSlots(run.plan(), run.step), rows);
  nested->lists_rows = rows;
}

absl::Status ControlFlow::RunBranch(const StepRun& run, Nested* nested) {
  const absl::Span<const TensorView> inputs = nested->inputs;
  const size_t outputs = run.step.outputs.size();
  FLOE_ASSIGN_OR_RETURN(const size_t branch, BranchTaken(run.node(), inputs[0]));
  Frame& frame = FrameOf(run, branch, nested);
  FindLists(run, nested);
  const uint64_t donatable = run.memory.Donatable(run.step);
  FLOE_RETURN_IF_ERROR(RunProgram(*(*run.step.programs)[branch], frame, inputs.subspan(1),
                                  nested->lists, TakenInputs(donatable, 1, inputs.size() - 1),
                                  run.threads));
  for (size_t k = 0; k < outputs; ++k) {
    // What a branch only passes on still belongs to the caller, and what it gives out twice to the
    // later output.
    const TensorView& value = frame.Output(static_cast<int>(k));
    bool again = false;
    for (size_t later = k + 1; later < outputs; ++later)
      again = again || frame.Output(static_cast<int>(later)).data == value.data;
    const auto from = std::find_if(inputs.begin() + 1, inputs.end(),
                                   [&](const TensorView& in) { return in.data == value.data; });
    const size_t position = from - inputs.begin();
    const bool take = !again && MayTakeOutput(frame, k) &&
                      (from == inputs.end() || (position < 64 && (donatable >> position & 1) != 0));
    FLOE_RETURN_IF_ERROR(Give(run, k, value, take));
  }
  return absl::OkStatus();
}

absl::Status ControlFlow::RunIsland(const StepRun& run, Nested* nested) {
  const CompiledSignature& program = *run.step.programs->front();
  if (program.on_device() != nullptr) {
    FLOE_RETURN_IF_ERROR(BindIsland(program, nested));
    if (nested->island_covered) {
      absl::Status done = RunOnDevice(run, nested);
      cuda::Device& device = *program.on_device()->device();
      device.CountRun(done.ok());
      if (done.ok() || program.on_host() == nullptr) return done;
      FLOE_RETURN_IF_ERROR(RunOnHost(run, *program.on_host(), nested));
      device.CountAnsweredByCpu();
      return absl::OkStatus();
    }
  }
  return RunOnHost(run, program.on_host() == nullptr ? program : *program.on_host(), nested);
}

absl::Status ControlFlow::RunOnHost(const StepRun& run, const CompiledSignature& program,
                                    Nested* nested) {
  nested->lists.resize(nested->inputs.size());  // none is a list
  const std::vector<bool> keep(nested->inputs.size(), false);
  Frame& frame = FrameOf(run, 0, nested);
  FLOE_RETURN_IF_ERROR(
      RunProgram(program, frame, nested->inputs, nested->lists, keep, run.threads));
  for (size_t k = 0; k < run.step.outputs.size(); ++k)
    FLOE_RETURN_IF_ERROR(Give(run, k, frame.Output(static_cast<int>(k)), /*take=*/false));
  return absl::OkStatus();
}

absl::Status ControlFlow::BindIsland(const CompiledSignature& program, Nested* nested) {
  const absl::Span<const TensorView> inputs = nested->inputs;
  const auto same = [](const TensorView& view, const Shape& shape) { return view.shape == shape; };
  if (nested->island.plan != nullptr &&
      std::equal(inputs.begin(), inputs.end(), nested->island_shapes.begin(), same))
    return absl::OkStatus();
  std::vector<Shape> shapes;
  for (const TensorView& view : inputs) shapes.push_back(view.shape);
  FLOE_ASSIGN_OR_RETURN(NestedPlan bound, BindNested(program, shapes, {}));
  if (bound.plan != nested->island.plan) nested->island_covered = IslandRun::Covers(*bound.plan);
  nested->island = std::move(bound);
  nested->island_shapes = std::move(shapes);
  return absl::OkStatus();
}

absl::Status ControlFlow::RunOnDevice(const StepRun& run, Nested* nested) {
  const int64_t rows = nested->island.rows;
  FLOE_ASSIGN_OR_RETURN(IslandRun* const island,
                        run.islands->Find({run.node().name, nested->island,
                                           run.step.programs->front()->on_device()}));
  FLOE_RETURN_IF_ERROR(island->Run(nested->inputs, rows));
  for (size_t k = 0; k < run.step.outputs.size(); ++k)
    FLOE_RETURN_IF_ERROR(Give(run, k, island->Output(k, rows), /*take=*/false));
  return absl::OkStatus();
}

absl::Status ControlFlow::RunWhile(const StepRun& run, Nested* nested) {
  const CompiledSignature &condition = *(*run.step.programs)[0], &body = *(*run.step.programs)[1];
  const bool scalar_bool = run.node().attrs.Bool("scalar_bool");
  const size_t count = nested->inputs.size();
  Variables variables{nested->inputs, TakenInputs(run.memory.Donatable(run.step), 0, count)};
  const std::vector<bool> keep(count, false);
  nested->kept.resize(2 * count);
  FindLists(run, nested);
  for (int64_t iteration = 0;; ++iteration) {
    FLOE_RETURN_IF_ERROR(SpendLoopRound());
    Frame& test = FrameOf(run, 0, nested);
    FLOE_RETURN_IF_ERROR(
        RunProgram(condition, test, variables.views, nested->lists, keep, run.threads));
    FLOE_ASSIGN_OR_RETURN(const bool again, Truth(test.Output(0), scalar_bool));
    if (!again) break;
    Frame& frame = FrameOf(run, 1 + iteration % 2, nested);
    FLOE_RETURN_IF_ERROR(
        RunProgram(body, frame, variables.views, nested->lists, variables.take, run.threads));
    FLOE_RETURN_IF_ERROR(
        variables.Advance(frame, iteration, *run.memory.values().pool(), &nested->kept));
  }
  for (size_t k = 0; k < run.step.outputs.size(); ++k)
    FLOE_RETURN_IF_ERROR(Give(run, k, variables.views[k], variables.take[k]));
  return absl::OkStatus();
}

}  // namespace floe
