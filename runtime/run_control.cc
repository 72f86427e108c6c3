// If, Case and While: subgraphs run in frames of their own.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/status.h"
#include "model/handle.h"
#include "runtime/frame.h"
#include "runtime/predicate.h"

namespace floe {
namespace {

// The number of rows a subgraph's plan runs at.
int64_t RowsOf(const CompiledSignature& program, absl::Span<const Shape> shapes) {
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (program.InputHasRows(static_cast<int>(i)) && shapes[i].rank() > 0) return shapes[i].dim(0);
  }
  return 1;
}

// What is known of the elements of a list in a run of so many rows; null: nothing.
ListTypePtr AtRows(const ListTypePtr& list, int64_t rows) {
  if (list == nullptr || !list->element.rank_known()) return nullptr;
  auto result = std::make_shared<ListType>(*list);
  result->size = Dim::Unknown();  // plans need not differ in it
  for (int i = 0; i < list->element.rank(); ++i) {
    const Dim dim = list->element.dim(i);
    if (dim.has_rows()) result->element.set_dim(i, dim.At(rows));
  }
  return result;
}

// Runs a subgraph on `inputs`, read in place; `frame` serves this program alone. `lists`: by input,
// as of BindSubgraph. `take`: bit i set when input i may be taken over.
absl::Status RunProgram(const CompiledSignature& program, Frame& frame,
                        absl::Span<const TensorView> inputs, absl::Span<const ListTypePtr> lists,
                        const std::vector<bool>& take, ThreadPool* threads) {
  FLOE_RETURN_IF_ERROR(program.refused());
  if (!frame.PrepareAgain(inputs, lists)) {
    std::vector<Shape> shapes;
    for (const TensorView& view : inputs) shapes.push_back(view.shape);
    FLOE_ASSIGN_OR_RETURN(std::shared_ptr<const Plan> plan, program.BindSubgraph(shapes, lists));
    const int64_t rows = plan->has_rows() ? RowsOf(program, shapes) : 1;
    FLOE_RETURN_IF_ERROR(frame.Prepare(std::move(plan), rows));
  }
  for (size_t k = 0; k < inputs.size(); ++k)
    frame.BindInput(static_cast<int>(k), inputs[k].data, take[k]);
  return frame.Run(threads);
}

}  // namespace

Frame& Frame::FrameOf(Nested& of_step, size_t i) const {
  if (of_step.frames.size() <= i) of_step.frames.resize(i + 1);
  if (of_step.frames[i] == nullptr) of_step.frames[i] = std::make_unique<Frame>(pool);
  of_step.frames[i]->observer = observer;
  return *of_step.frames[i];
}

// `handed`: the slots whose types hold for what the subgraphs are handed.
void Frame::FindLists(absl::Span<const int> handed, Nested* of_step) const {
  if (of_step->lists_rows == rows) return;
  of_step->lists.clear();
  for (const int slot : handed)
    of_step->lists.push_back(AtRows(plan->slots_[slot].type.list, rows));
  of_step->lists_rows = rows;
}

absl::Status Frame::RunControl(const Step& step, size_t s, absl::Span<const TensorView> inputs,
                               ThreadPool* threads) {
  if (nested.size() < plan->steps_.size()) nested.resize(plan->steps_.size());
  const bool loop = plan->program_->graph.node(step.node).op->name == "While";
  return loop ? RunWhile(step, nested[s], inputs, threads)
              : RunBranch(step, nested[s], inputs, threads);
}

absl::Status Frame::RunBranch(const Step& step, Nested& of_step,
                              absl::Span<const TensorView> inputs, ThreadPool* threads) {
  const auto& programs = *step.programs;
  FLOE_ASSIGN_OR_RETURN(const size_t branch,
                        BranchTaken(plan->program_->graph.node(step.node), inputs[0]));
  Frame& frame = FrameOf(of_step, branch);
  FindLists(absl::MakeConstSpan(step.inputs).subspan(1), &of_step);
  const uint64_t donatable = Donatable(step);
  std::vector<bool> take;
  for (size_t k = 1; k < inputs.size(); ++k) take.push_back(k < 64 && (donatable >> k & 1) != 0);
  FLOE_RETURN_IF_ERROR(
      RunProgram(*programs[branch], frame, inputs.subspan(1), of_step.lists, take, threads));
  for (size_t k = 0; k < step.outputs.size(); ++k) {
    // What a branch only passes on still belongs to the caller, and what it gives out twice to the
    // later output.
    const TensorView& value = frame.Output(static_cast<int>(k));
    bool again = false;
    for (size_t later = k + 1; later < step.outputs.size(); ++later)
      again = again || frame.Output(static_cast<int>(later)).data == value.data;
    const auto from = std::find_if(inputs.begin() + 1, inputs.end(),
                                   [&](const TensorView& in) { return in.data == value.data; });
    const size_t position = from - inputs.begin();
    const bool take_output =
        !again && frame.MayTakeOutput(static_cast<int>(k)) &&
        (from == inputs.end() || (position < 64 && (donatable >> position & 1) != 0));
    FLOE_RETURN_IF_ERROR(Give(step, k, value, take_output));
  }
  return absl::OkStatus();
}

absl::Status Frame::RunWhile(const Step& step, Nested& of_step, absl::Span<const TensorView> inputs,
                             ThreadPool* threads) {
  const CompiledSignature &condition = *(*step.programs)[0], &body = *(*step.programs)[1];
  const bool scalar_bool = plan->program_->graph.node(step.node).attrs.Bool("scalar_bool");
  std::vector<TensorView> variables(inputs.begin(), inputs.end());
  const uint64_t donatable = Donatable(step);
  std::vector<bool> take(inputs.size());
  for (size_t k = 0; k < take.size() && k < 64; ++k) take[k] = (donatable >> k & 1) != 0;
  const std::vector<bool> keep(inputs.size(), false);
  of_step.kept.resize(2 * inputs.size());
  FindLists(step.outputs, &of_step);  // their types hold for the variables in every iteration
  for (int64_t iteration = 0;; ++iteration) {
    FLOE_RETURN_IF_ERROR(SpendLoopRound());
    Frame& test = FrameOf(of_step, 0);
    FLOE_RETURN_IF_ERROR(RunProgram(condition, test, variables, of_step.lists, keep, threads));
    FLOE_ASSIGN_OR_RETURN(const bool again, Truth(test.Output(0), scalar_bool));
    if (!again) break;
    Frame& frame = FrameOf(of_step, 1 + iteration % 2);
    FLOE_RETURN_IF_ERROR(RunProgram(body, frame, variables, of_step.lists, take, threads));
    const std::vector<TensorView> before = variables;
    for (size_t k = 0; k < variables.size(); ++k) {
      const TensorView& value = frame.Output(static_cast<int>(k));
      const auto same = [&](const TensorView& v) {
        return v.data == value.data && v.data != nullptr;
      };
      if (same(before[k])) {  // passed on in place
        variables[k].shape = value.shape;
        continue;
      }
      // A value that came in elsewhere, or that another variable shows too, needs memory of its
      // own: the next iteration but one writes where it is now.
      const bool shared = std::any_of(before.begin(), before.end(), same) ||
                          std::any_of(variables.begin(), variables.begin() + k, same);
      variables[k] = value;
      if (shared) {
        Tensor& kept = of_step.kept[2 * k + iteration % 2];
        FLOE_ASSIGN_OR_RETURN(kept, pool->Copy(value));
        variables[k] = kept.view();
      }
      take[k] = shared || frame.MayTakeOutput(static_cast<int>(k));
    }
  }
  for (size_t k = 0; k < step.outputs.size(); ++k)
    FLOE_RETURN_IF_ERROR(Give(step, k, variables[k], take[k]));
  return absl::OkStatus();
}

}  // namespace floe
