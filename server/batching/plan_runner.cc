#include "server/batching/plan_runner.h"

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/status.h"
#include "server/batching/padding.h"

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

bool IsPending(const TensorView& input) { return input.data == nullptr && input.elements() > 0; }

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

bool SizedElements(const std::vector<TensorType>& types) {
  return std::all_of(types.begin(), types.end(),
                     [](const TensorType& type) { return DTypeSize(type.dtype) != 0; });
}

// Whether rows may be computed in runs of other sizes. Outputs are put together by bytes, so every
// one needs elements of a size and rows that are as large in every run.
bool RowsAreFree(const Plan& plan) {
  const std::vector<TensorType>& outputs = plan.output_types();
  return plan.has_rows() && plan.batchable() && SizedElements(outputs) &&
         std::all_of(outputs.begin(), outputs.end(),
                     [](const TensorType& type) { return type.shape.known(); });
}

absl::Status CheckRows(const Task& task, size_t i, const TensorView& output, int64_t rows) {
  if (output.shape.rank() > 0 && output.shape.dim(0) == rows) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(
      "output '", task.form->signature().outputs[i].key, "' has shape ", output.shape.ToString(),
      " after a run of ", rows, " rows; its first dim must be the rows"));
}

}  // namespace

int64_t RowsWithin(const Plan& plan, int64_t bytes) {
  const int64_t of_row = plan.ArenaBytes(1) - plan.ArenaBytes(0);
  if (of_row <= 0) return INT64_MAX;
  return std::max<int64_t>(1, (bytes - plan.ArenaBytes(0)) / of_row);
}

absl::Status RunWithin(const RunLimits& limits, ExecContext* context) {
  context->budget().SetCancel(limits.cancel);
  context->budget().SetDeadline(
      limits.deadline == TimePoint::max() ? std::nullopt : std::optional(limits.deadline),
      limits.clock);
  absl::Status status = context->Run();
  context->budget().SetCancel(nullptr);  // it goes with the request
  return status;
}

PlanRunner::PlanRunner(int slots, int intra_op_threads, Options options)
    : options_(std::move(options)) {
  AddSlots(slots, intra_op_threads);
}

void PlanRunner::AddSlots(int count, int intra_op_threads) {
  ResourceLimits limits;
  limits.max_bytes = options_.max_run_bytes;
  limits.max_value_bytes = std::min(limits.max_value_bytes, limits.max_bytes);
  for (int i = 0; i < count; ++i) {
    slots_.push_back({std::make_unique<ExecContext>(intra_op_threads)});
    slots_.back().context->budget().SetLimits(limits);
  }
}

// Says which key the limit of a run comes from, where it is not that of all memory.
absl::Status PlanRunner::Limited(const absl::Status& status) const {
  if (!absl::IsResourceExhausted(status) || absl::StrContains(status.message(), "memory_limit"))
    return status;
  return absl::ResourceExhaustedError(absl::StrCat(
      std::string(status.message()), "; max_run_bytes of the model is ", options_.max_run_bytes));
}

absl::Status PlanRunner::PadForm(const CompiledSignature& form,
                                 const std::map<std::string, double>& values) {
  std::vector<Tensor> pads;
  bool any = false;
  const auto& inputs = form.signature().inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    pads.emplace_back();
    const TensorType& type = inputs[i].type;
    if (!form.InputHasRows(static_cast<int>(i))) continue;
    // Strings have no place where rows are gathered, and lists of dims of unequal length no
    // maximum.
    if (DTypeSize(type.dtype) == 0 || !type.shape.rank_known()) return absl::OkStatus();
    for (int axis = 1; axis < type.shape.rank(); ++axis) any |= !type.shape.dim(axis).concrete();
    const auto value = values.find(inputs[i].key);
    auto pad = PadValue(type.dtype, value == values.end() ? 0 : value->second);
    if (!pad.ok()) return Annotate(pad.status(), absl::StrCat("input '", inputs[i].key, "'"));
    pads.back() = *std::move(pad);
  }
  if (any) pads_[&form] = std::move(pads);
  return absl::OkStatus();
}

absl::Status PlanRunner::PadInnerDims(const Model& model,
                                      const std::map<std::string, double>& values) {
  std::set<std::string> known;
  for (const auto& [name, signature] : model.signatures()) {
    for (const SignatureTensor& input : signature.def().inputs) known.insert(input.key);
    for (const Signature::Form& form : signature.forms())
      FLOE_RETURN_IF_ERROR(PadForm(*form.compiled, values));
  }
  for (const auto& [key, value] : values)
    if (known.count(key) == 0)
      return absl::InvalidArgumentError(
          absl::StrCat("padding_values names input '", key, "', which the model does not have"));
  return absl::OkStatus();
}

const RunCost* PlanRunner::CostOf(const CompiledSignature* form) const {
  for (const RunCost& cost : costs_)
    if (cost.form == form) return &cost;
  return nullptr;
}

absl::Status PlanRunner::Admit(Task* task) {
  InferRequest& request = *task->request;
  absl::InlinedVector<const TensorView*, kUsualTensors> fed;
  for (const TensorView& input : request.inputs)
    fed.push_back(input.dtype == DType::kInvalid ? nullptr : &input);
  FLOE_ASSIGN_OR_RETURN(const Signature::Form* form,
                        request.signature->Choose(absl::MakeSpan(fed)));
  task->form = form->compiled.get();
  task->input_of = &form->inputs;
  // What the request left out is from here on as if it had fed the default.
  for (const int i : form->inputs)
    if (fed[i] != &request.inputs[i]) request.inputs[i] = *fed[i];

  absl::InlinedVector<Shape, kUsualTensors> shapes;
  for (const int i : *task->input_of) shapes.push_back(request.inputs[i].shape);
  FLOE_ASSIGN_OR_RETURN(task->plan, task->form->Bind(shapes));

  const Plan& plan = *task->plan;
  // A plan stands for its form and inner shapes, and the task keeps it alive.
  task->key = task->plan.get();
  task->alone = !plan.has_rows() || !plan.batchable();
  if (!pads_.empty() && !task->alone && pads_.count(task->form) > 0) task->key = task->form;
  task->rows = 1;
  for (int i = static_cast<int>(shapes.size()) - 1; i >= 0; --i) {
    const TensorView& input = InputOf(*task, i);
    if (!IsPending(input)) task->bytes += input.bytes();
    if (!HasRows(plan, i)) {
      task->alone |= IsPending(input);  // cannot be compared
      if (!IsPending(input)) task->fixed.push_back(input);
      continue;
    }
    task->rows = input.shape.dim(0);
    task->alone |=
        input.dtype == DType::kString;  // has no place in the arena where rows could be gathered
  }
  task->bytes = std::max(task->bytes, request.owner_bytes);
  task->alone |= task->rows == 0;
  task->splittable = RowsAreFree(plan);
  if (plan.has_rows() && options_.max_request_rows > 0 && task->rows > options_.max_request_rows)
    return absl::InvalidArgumentError(absl::StrCat(
        "the request has ", task->rows, " rows, and the model takes at most ",
        options_.max_request_rows, " (max_batch_size, without enable_large_batch_splitting)"));
  task->max_rows = std::min(options_.max_rows, RowsWithin(plan, options_.max_arena_bytes));
  const RunCost* const cost = CostOf(task->form);
  if (cost != nullptr && cost->max_rows > 0)
    task->max_rows = std::min(task->max_rows, cost->max_rows);
  // Its parts would be as long as whoever they share a run with, and could not be put together.
  if (task->rows > task->max_rows) task->key = task->plan.get();
  if (cost == nullptr) return absl::OkStatus();
  task->cheap = cost->exact && request.pending == nullptr && task->rows <= task->max_rows &&
                cost->curve.Micros(RunRows(*task, task->rows)) < options_.inline_below_us;
  return absl::OkStatus();
}

Duration PlanRunner::Expect(const Task& task, int64_t rows) const {
  const RunCost* const cost = CostOf(task.form);
  if (cost == nullptr) return Duration::zero();
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double, std::micro>(cost->curve.Micros(RunRows(task, rows))));
}

int64_t PlanRunner::RunRows(const Task& task, int64_t rows) const {
  if (options_.allowed_rows.empty() || rows == 0 || !RowsAreFree(*task.plan) ||
      !SizedElements(task.plan->input_types()))
    return rows;
  const auto allowed =
      std::lower_bound(options_.allowed_rows.begin(), options_.allowed_rows.end(), rows);
  return allowed == options_.allowed_rows.end() ? rows : *allowed;
}

std::string PlanRunner::Describe(const Task& task) const {
  std::string text = task.form->signature().name;
  if (text.empty()) text = "serving_default";
  const bool padded = task.key == task.form;
  for (const TensorType& type : task.plan->input_types())
    absl::StrAppend(&text, " ", padded ? "padded" : type.shape.ToString());
  return text;
}

std::string PlanRunner::Doing(int slot) const {
  const Node* const node = slots_[slot].context->Doing();
  return node == nullptr ? ""
                         : absl::StrCat("node ", Quoted(node->name), " (", node->op->name, ")");
}

void PlanRunner::Trim(int slot) { slots_[slot].context->Trim(); }

// The plan of all slices' inputs: their own, or with padding that of the longest.
absl::StatusOr<std::shared_ptr<const Plan>> PlanRunner::PlanOf(
    absl::Span<const Slice> batch) const {
  const Task& first = *batch[0].task;
  const bool same = std::all_of(batch.begin(), batch.end(), [&first](const Slice& slice) {
    return slice.task->plan == first.plan;
  });
  if (same) return first.plan;
  absl::InlinedVector<Shape, kUsualTensors> shapes;
  for (size_t i = 0; i < first.input_of->size(); ++i) {
    shapes.push_back(InputOf(first, static_cast<int>(i)).shape);
    if (!HasRows(*first.plan, static_cast<int>(i))) continue;
    for (const Slice& slice : batch)
      RaiseInnerDims(InputOf(*slice.task, static_cast<int>(i)).shape, &shapes.back());
  }
  FLOE_ASSIGN_OR_RETURN(auto plan, first.form->Bind(shapes));
  if (plan->has_rows() && plan->batchable()) return plan;
  return absl::FailedPreconditionError("the padded inputs may not share a run");
}

// Gathers the slices' rows of an input, and repeats the last one up to run_rows.
void PlanRunner::FeedRows(absl::Span<const Slice> batch, int input, int64_t rows, int64_t run_rows,
                          ExecContext& context) const {
  const TensorView& whole = context.Input(input);
  int64_t row = 0;
  for (const Slice& slice : batch) {
    const TensorView from = Rows(InputOf(*slice.task, input), slice.first, slice.rows);
    const TensorView to = Rows(whole, row, slice.rows);
    if (from.shape == to.shape) {
      CopyElements(from, to.data);
    } else {
      CopyPadded(from, to, pads_.at(slice.task->form)[input]);
    }
    row += slice.rows;
  }
  const TensorView last = Rows(whole, rows - 1, 1);
  for (; row < run_rows; ++row) CopyElements(last, Rows(whole, row, 1).data);
}

absl::Status PlanRunner::Run(int index, absl::Span<const Slice> batch, const RunLimits& limits) {
  Slot& slot = slots_[index];
  const Task& first = *batch[0].task;
  ExecContext& context = *slot.context;
  int64_t rows = 0;
  for (const Slice& slice : batch) {
    rows += slice.rows;
    if (slice.task->request->pending != nullptr)
      FLOE_RETURN_IF_ERROR(slice.task->request->pending->Decode());
  }
  const int64_t run_rows = RunRows(first, rows);
  FLOE_ASSIGN_OR_RETURN(auto plan, PlanOf(batch));
  FLOE_RETURN_IF_ERROR(Limited(context.Prepare(plan, run_rows)));
  const bool gathers = batch.size() > 1 || run_rows != rows;
  for (int i = 0; i < static_cast<int>(first.input_of->size()); ++i) {
    const TensorView& input = InputOf(first, i);
    if (!HasRows(*plan, i)) {
      Feed(input, i, context);
    } else if (gathers) {
      FeedRows(batch, i, rows, run_rows, context);
    } else {
      Feed(batch[0].partial() ? Rows(input, batch[0].first, rows) : input, i, context);
    }
  }
  FLOE_RETURN_IF_ERROR(Limited(RunWithin(limits, &context)));
  if (first.request->model != nullptr) FLOE_RETURN_IF_ERROR(first.request->model->CheckFile());

  slot.sliced = gathers;
  if (!gathers && !batch[0].partial()) return absl::OkStatus();
  // The proof that rows may be shared is checked against what came out before anyone gets another's
  // rows.
  for (size_t i = 0; i < first.form->signature().outputs.size(); ++i)
    FLOE_RETURN_IF_ERROR(CheckRows(first, i, context.Output(static_cast<int>(i)), run_rows));
  return absl::OkStatus();
}

void PlanRunner::Outputs(int slot, const Slice& slice, int64_t first_row, OutputViews* views) {
  const ExecContext& context = *slots_[slot].context;
  for (size_t i = 0; i < slice.task->form->signature().outputs.size(); ++i) {
    const TensorView& whole = context.Output(static_cast<int>(i));
    views->push_back(slots_[slot].sliced ? Rows(whole, first_row, slice.rows) : whole);
  }
}

}  // namespace floe::server
