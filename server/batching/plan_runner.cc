#include "server/batching/plan_runner.h"

#include <cstring>
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

}  // namespace

PlanRunner::PlanRunner(int slots, int intra_op_threads, int64_t max_batch_rows)
    : intra_op_threads_(intra_op_threads), max_batch_rows_(max_batch_rows) {
  AddSlots(slots);
}

void PlanRunner::AddSlots(int count) {
  for (int i = 0; i < count; ++i)
    slots_.push_back({std::make_unique<ExecContext>(intra_op_threads_)});
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

absl::Status PlanRunner::Run(int slot, absl::Span<Task* const> batch) {
  const Task& first = *batch[0];
  ExecContext& context = *slots_[slot].context;
  int64_t rows = 0;
  for (const Task* task : batch) rows += task->rows;
  FLOE_RETURN_IF_ERROR(context.Prepare(first.plan, rows));
  const int inputs = static_cast<int>(first.input_of->size());
  for (int i = 0; i < inputs; ++i) {
    const bool whole = batch.size() == 1 || !HasRows(*first.plan, i);
    if (whole && IsAligned(InputOf(first, i))) {
      context.BindInput(i, InputOf(first, i).data);
      continue;
    }
    const TensorView& target = context.Input(i);
    if (whole) {
      CopyElements(InputOf(first, i), target.data);
      continue;
    }
    int64_t row = 0;
    for (const Task* task : batch) {
      CopyElements(InputOf(*task, i), Rows(target, row, task->rows).data);
      row += task->rows;
    }
  }
  FLOE_RETURN_IF_ERROR(context.Run());

  slots_[slot].sliced = batch.size() > 1;
  if (batch.size() == 1) return absl::OkStatus();
  // The proof that rows may be shared is checked against what came out before anyone gets another's
  // rows.
  for (size_t i = 0; i < first.form->signature().outputs.size(); ++i) {
    const TensorView& output = context.Output(static_cast<int>(i));
    if (output.shape.rank() == 0 || output.shape.dim(0) != rows)
      return absl::InternalError(absl::StrCat("output '", first.form->signature().outputs[i].key,
                                              "' has shape ", output.shape.ToString(),
                                              " after a batch of ", rows,
                                              " rows; its first dim must be the rows"));
  }
  return absl::OkStatus();
}

void PlanRunner::Outputs(int slot, const Task& task, int64_t first_row, OutputViews* views) {
  const ExecContext& context = *slots_[slot].context;
  for (size_t i = 0; i < task.form->signature().outputs.size(); ++i) {
    const TensorView& whole = context.Output(static_cast<int>(i));
    views->push_back(slots_[slot].sliced ? Rows(whole, first_row, task.rows) : whole);
  }
}

}  // namespace floe::server
