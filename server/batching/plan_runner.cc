#include "server/batching/plan_runner.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace floe::server {
namespace {

size_t ElementBytes(DType dtype) {
  return dtype == DType::kString ? sizeof(std::string) : DTypeSize(dtype);
}

// A view of rows [first, first + rows) of a tensor whose dim 0 counts rows.
TensorView Rows(const TensorView& whole, int64_t first, int64_t rows) {
  TensorView view = whole;
  view.shape.set_dim(0, rows);
  const int64_t row_elements = rows == 0 ? 0 : view.elements() / rows;
  view.data = static_cast<std::byte*>(whole.data) +
              static_cast<size_t>(first * row_elements) * ElementBytes(whole.dtype);
  return view;
}

bool IsAligned(const TensorView& view) {
  const size_t to = view.dtype == DType::kString ? alignof(std::string) : DTypeSize(view.dtype);
  return view.data != nullptr && reinterpret_cast<uintptr_t>(view.data) % to == 0;
}

// Whether input i of the plan is counted in rows.
bool HasRows(const Plan& plan, int i) {
  const SymShape& shape = plan.input_types()[i].shape;
  return plan.has_rows() && shape.rank() > 0 && shape.dim(0).has_rows();
}

const TensorView& InputOf(const Task& task, int i) {
  return task.request->inputs[(*task.input_of)[i]];
}

// Lets input i be read from where it lies, or copies it where the kernels could not read it.
void Feed(const TensorView& view, int i, ExecContext& context) {
  if (IsAligned(view)) {
    context.BindInput(i, view.data);
  } else {
    CopyElements(view, context.Input(i).data);
  }
}

// Pieces are put together by bytes, so every output needs rows of a size.
bool CanRunInPieces(const Plan& plan) {
  return plan.has_rows() && plan.batchable() &&
         std::all_of(plan.output_types().begin(), plan.output_types().end(),
                     [](const TensorType& type) { return DTypeSize(type.dtype) != 0; });
}

absl::Status CheckRows(const Task& task, size_t i, const TensorView& output, int64_t rows) {
  if (output.shape.rank() > 0 && output.shape.dim(0) == rows) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(
      "output '", task.form->signature().outputs[i].key, "' has shape ", output.shape.ToString(),
      " after a run of ", rows, " rows; its first dim must be the rows"));
}

absl::Status StillWanted(const InferRequest& request) {
  if (request.cancel != nullptr && request.cancel->cancelled())
    return absl::CancelledError("the caller cancelled the request");
  if (request.deadline != TimePoint::max() && request.deadline <= Clock::Steady().Now())
    return absl::DeadlineExceededError("the deadline passed while the request was computed");
  return absl::OkStatus();
}

}  // namespace

PlanRunner::PlanRunner(int slots, int intra_op_threads, int64_t max_batch_rows)
    : max_batch_rows_(max_batch_rows) {
  AddSlots(slots, intra_op_threads);
}

void PlanRunner::AddSlots(int count, int intra_op_threads) {
  for (int i = 0; i < count; ++i)
    slots_.push_back({std::make_unique<ExecContext>(intra_op_threads)});
}

void PlanRunner::SetCosts(std::vector<RunCost> costs, double inline_below_us) {
  costs_ = std::move(costs);
  inline_below_us_ = inline_below_us;
}

absl::Status PlanRunner::Admit(Task* task) {
  const InferRequest& request = *task->request;
  absl::InlinedVector<const TensorView*, 4> fed;
  for (const TensorView& input : request.inputs)
    fed.push_back(input.dtype == DType::kInvalid ? nullptr : &input);
  FLOE_ASSIGN_OR_RETURN(task->form, request.signature->Choose(fed, &task->input_of));

  absl::InlinedVector<Shape, 4> shapes;
  for (const int i : *task->input_of) shapes.push_back(request.inputs[i].shape);
  FLOE_ASSIGN_OR_RETURN(task->plan, task->form->Bind(shapes));

  task->key =
      task->plan.get();  // a plan stands for its form and inner shapes, and the task keeps it alive
  task->rows = 1;
  task->alone = !task->plan->has_rows() || !task->plan->batchable();
  for (int i = static_cast<int>(shapes.size()) - 1; i >= 0; --i) {
    const TensorView& input = InputOf(*task, i);
    task->bytes += input.bytes();
    if (!HasRows(*task->plan, i)) {
      task->fixed.push_back(input);
      continue;
    }
    task->rows = input.shape.dim(0);
    task->alone |=
        input.dtype == DType::kString;  // has no place in the arena where rows could be gathered
  }
  task->alone |= task->rows == 0 || task->rows > max_batch_rows_;
  for (const RunCost& cost : costs_)
    if (cost.form == task->form)
      task->cheap =
          cost.fixed_us + cost.per_row_us * static_cast<double>(task->rows) < inline_below_us_;
  return absl::OkStatus();
}

void PlanRunner::Trim(int slot) {
  slots_[slot].gathered.clear();
  slots_[slot].context->Trim();
}

absl::Status PlanRunner::Run(int index, absl::Span<Task* const> batch) {
  Slot& slot = slots_[index];
  slot.gathered.clear();
  const Task& first = *batch[0];
  if (batch.size() == 1 && first.rows > max_batch_rows_ && CanRunInPieces(*first.plan))
    return RunInPieces(&slot, first);
  return RunOnce(&slot, batch);
}

absl::Status PlanRunner::RunOnce(Slot* slot, absl::Span<Task* const> batch) {
  const Task& first = *batch[0];
  ExecContext& context = *slot->context;
  int64_t rows = 0;
  for (const Task* task : batch) rows += task->rows;
  FLOE_RETURN_IF_ERROR(context.Prepare(first.plan, rows));
  const int inputs = static_cast<int>(first.input_of->size());
  for (int i = 0; i < inputs; ++i) {
    if (batch.size() == 1 || !HasRows(*first.plan, i)) {
      Feed(InputOf(first, i), i, context);
      continue;
    }
    int64_t row = 0;
    for (const Task* task : batch) {
      CopyElements(InputOf(*task, i), Rows(context.Input(i), row, task->rows).data);
      row += task->rows;
    }
  }
  FLOE_RETURN_IF_ERROR(context.Run());

  slot->sliced = batch.size() > 1;
  if (batch.size() == 1) return absl::OkStatus();
  // The proof that rows may be shared is checked against what came out before anyone gets another's
  // rows.
  for (size_t i = 0; i < first.form->signature().outputs.size(); ++i)
    FLOE_RETURN_IF_ERROR(CheckRows(first, i, context.Output(static_cast<int>(i)), rows));
  return absl::OkStatus();
}

absl::Status PlanRunner::RunInPieces(Slot* slot, const Task& task) {
  ExecContext& context = *slot->context;
  slot->sliced = false;
  for (int64_t row = 0; row < task.rows; row += max_batch_rows_) {
    FLOE_RETURN_IF_ERROR(StillWanted(*task.request));
    const int64_t rows = std::min(max_batch_rows_, task.rows - row);
    FLOE_RETURN_IF_ERROR(context.Prepare(task.plan, rows));
    for (int i = 0; i < static_cast<int>(task.input_of->size()); ++i) {
      const TensorView& whole = InputOf(task, i);
      Feed(HasRows(*task.plan, i) ? Rows(whole, row, rows) : whole, i, context);
    }
    FLOE_RETURN_IF_ERROR(context.Run());
    for (size_t i = 0; i < task.form->signature().outputs.size(); ++i) {
      const TensorView& piece = context.Output(static_cast<int>(i));
      FLOE_RETURN_IF_ERROR(CheckRows(task, i, piece, rows));
      Shape shape = piece.shape;
      shape.set_dim(0, task.rows);
      if (row == 0) {
        FLOE_RETURN_IF_ERROR(CheckedElements(shape.dims(), DTypeSize(piece.dtype)).status());
        slot->gathered.push_back(Tensor::Allocate(piece.dtype, shape));
      }
      if (slot->gathered[i].shape() != shape)
        return absl::InternalError(absl::StrCat(
            "output '", task.form->signature().outputs[i].key, "' has ", piece.shape.ToString(),
            " in one piece of the request and other inner dims in another"));
      CopyElements(piece, Rows(slot->gathered[i].view(), row, rows).data);
    }
  }
  return absl::OkStatus();
}

void PlanRunner::Outputs(int slot, const Task& task, int64_t first_row, OutputViews* views) {
  const ExecContext& context = *slots_[slot].context;
  for (const Tensor& output : slots_[slot].gathered) views->push_back(output.view());
  if (!views->empty()) return;
  for (size_t i = 0; i < task.form->signature().outputs.size(); ++i) {
    const TensorView& whole = context.Output(static_cast<int>(i));
    views->push_back(slots_[slot].sliced ? Rows(whole, first_row, task.rows) : whole);
  }
}

}  // namespace floe::server
