// Binds requests to plans, gathers their rows, runs the plan, and gives each its rows.
#include "server/executor/plan_executor.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/status.h"
#include "runtime/step_profile.h"

namespace floe::server {
namespace {

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

const TensorView& InputOf(const Bound& bound, int i) {
  return bound.asked->Input((*bound.binding.input_of)[i]);
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

// Of all outputs of so many rows.
int64_t OutputBytes(const Plan& plan, int64_t rows) {
  double bytes = 0;
  for (const TensorType& type : plan.output_types()) {
    double elements = static_cast<double>(DTypeSize(type.dtype));
    for (int axis = 0; axis < type.shape.rank(); ++axis)
      elements *= static_cast<double>(type.shape.dim(axis).At(rows));
    bytes += elements;
  }
  return static_cast<int64_t>(std::min(bytes, 0x1p62));
}

absl::Status CheckRows(const Bound& bound, size_t i, const TensorView& output, int64_t rows) {
  if (output.shape.rank() > 0 && output.shape.dim(0) == rows) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(
      "output ", Quoted(bound.binding.variant->signature().outputs[i].key), " has shape ",
      output.shape.ToString(), " after a run of ", rows, " rows; its first dim must be the rows"));
}

// Says which key the limit of a run comes from, where it is not that of all memory.
absl::Status Limited(const absl::Status& status, int64_t max_run_bytes) {
  if (!absl::IsResourceExhausted(status) || absl::StrContains(status.message(), "memory_limit"))
    return status;
  return absl::ResourceExhaustedError(absl::StrCat(
      std::string(status.message()), "; max_run_bytes of the model is ", max_run_bytes));
}

const RunCost* CostOf(const std::vector<RunCost>& costs, const CompiledSignature* variant) {
  for (const RunCost& cost : costs)
    if (cost.variant == variant) return &cost;
  return nullptr;
}

// The plan of all inputs: their own, or with padding that of the longest.
absl::StatusOr<std::shared_ptr<const Plan>> PlanOf(absl::Span<const Bound* const> batch) {
  const Binding& first = batch[0]->binding;
  const bool same = std::all_of(batch.begin(), batch.end(), [&first](const Bound* bound) {
    return bound->binding.plan == first.plan;
  });
  if (same) return first.plan;
  absl::InlinedVector<Shape, kUsualTensors> shapes;
  for (int i = 0; i < static_cast<int>(first.input_of->size()); ++i) {
    shapes.push_back(InputOf(*batch[0], i).shape);
    if (!HasRows(*first.plan, i)) continue;
    for (const Bound* bound : batch) RaiseNonBatchDims(InputOf(*bound, i).shape, &shapes.back());
  }
  FLOE_ASSIGN_OR_RETURN(auto plan, first.variant->Bind(shapes));
  if (plan->has_rows() && plan->batchable()) return plan;
  return absl::FailedPreconditionError("the padded inputs may not share a run");
}

// Gathers the rows of an input, and repeats the last one up to run_rows.
void FeedRows(absl::Span<const Bound* const> batch, int input, int64_t rows, int64_t run_rows,
              const Padding& padding, ExecContext& context) {
  const TensorView& whole = context.Input(input);
  int64_t row = 0;
  for (const Bound* bound : batch) {
    const TensorView& from = InputOf(*bound, input);
    const TensorView to = RowsOf(whole, row, bound->binding.rows);
    if (from.shape == to.shape) {
      CopyElements(from, to.data);
    } else {
      CopyPadded(from, to, padding.Value(bound->binding.variant, input));
    }
    row += bound->binding.rows;
  }
  const TensorView last = RowsOf(whole, rows - 1, 1);
  for (; row < run_rows; ++row) CopyElements(last, RowsOf(whole, row, 1).data);
}

// How many rows a run with this key may have, and whether one of the inference, which computes
// `run_rows`, is quick. `cost` is null where nothing is known.
void BindCost(const RunCost* cost, const PlanExecutor::Options& options, int64_t run_rows,
              Binding* binding) {
  binding->max_rows =
      std::min(options.max_rows, RowsWithin(*binding->plan, options.max_arena_bytes));
  if (cost != nullptr && cost->max_rows > 0)
    binding->max_rows = std::min(binding->max_rows, cost->max_rows);
  // Its parts would be as long as whoever they share a run with, and could not be put together.
  if (binding->rows > binding->max_rows) binding->key = binding->plan.get();
  if (cost == nullptr) return;
  binding->batch_gain = cost->batch_gain;
  binding->estimated = cost->exact;
  binding->quick = cost->exact && binding->rows <= binding->max_rows &&
                   cost->curve.Micros(run_rows) < options.inline_below_us;
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
  context->budget().SetCancel(nullptr);  // it may go with the run
  return status;
}

PlanExecutor::PlanExecutor(int slots, int intra_op_threads, Options options)
    : options_(std::move(options)) {
  AddSlots(slots, intra_op_threads);
}

void PlanExecutor::AddSlots(int count, int intra_op_threads) {
  ResourceLimits limits;
  limits.max_bytes = options_.max_run_bytes;
  limits.max_value_bytes = std::min(limits.max_value_bytes, limits.max_bytes);
  for (int i = 0; i < count; ++i) {
    slots_.emplace_back().context = std::make_unique<ExecContext>(intra_op_threads);
    slots_.back().context->budget().SetLimits(limits);
    if (options_.fill != MemoryFill::kNone) slots_.back().context->CheckMemory(options_.fill);
  }
}

absl::Status PlanExecutor::PadNonBatchDims(const Model& model,
                                           const std::map<std::string, double>& values) {
  FLOE_ASSIGN_OR_RETURN(padding_, Padding::Of(model, values));
  return absl::OkStatus();
}

absl::StatusOr<Binding> PlanExecutor::Bind(const Inference& asked) {
  absl::InlinedVector<const TensorView*, kUsualTensors> fed;
  for (const TensorView& input : asked.inputs)
    fed.push_back(input.dtype == DType::kInvalid ? nullptr : &input);
  FLOE_ASSIGN_OR_RETURN(const Signature::Variant* const variant,
                        asked.signature->Choose(absl::MakeSpan(fed)));
  Bound bound{&asked, {}};
  Binding& binding = bound.binding;
  binding.variant = variant->compiled.get();
  binding.input_of = &variant->inputs;

  absl::InlinedVector<Shape, kUsualTensors> shapes;
  for (const int i : variant->inputs) shapes.push_back(fed[i]->shape);
  FLOE_ASSIGN_OR_RETURN(binding.plan, binding.variant->Bind(shapes));
  const Plan& plan = *binding.plan;
  BindRows(plan, &bound);
  if (plan.has_rows()) FLOE_RETURN_IF_ERROR(CheckRequestRows(binding.rows));
  BindCost(CostOf(costs_, binding.variant), options_, RunRows(bound, binding.rows), &binding);
  binding.quick &= asked.pending == nullptr;
  return std::move(bound.binding);
}

absl::Status PlanExecutor::CheckRequestRows(int64_t rows) const {
  if (options_.max_request_rows <= 0 || rows <= options_.max_request_rows) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the request has ", rows, " rows, and the model takes at most ", options_.max_request_rows,
      " (max_batch_size, without enable_large_batch_splitting)"));
}

void PlanExecutor::BindRows(const Plan& plan, Bound* bound) const {
  Binding& binding = bound->binding;
  // A plan stands for its variant and non-batch dimensions, and the binding keeps it alive.
  binding.key = binding.plan.get();
  binding.unbatchable = !plan.has_rows() || !plan.batchable();
  if (!binding.unbatchable && padding_.Has(binding.variant)) binding.key = binding.variant;
  for (int i = static_cast<int>(binding.input_of->size()) - 1; i >= 0; --i) {
    const TensorView& input = InputOf(*bound, i);
    if (!IsPending(input)) binding.bytes += input.bytes();
    if (!HasRows(plan, i)) {
      binding.unbatchable |= IsPending(input);  // cannot be compared
      binding.fixed.push_back((*binding.input_of)[i]);
      continue;
    }
    binding.rows = input.shape.dim(0);
    binding.unbatchable |=
        input.dtype == DType::kString;  // has no place in the arena where rows could be gathered
  }
  binding.bytes = std::max(binding.bytes, bound->asked->held_bytes);
  binding.unbatchable |= binding.rows == 0;
  binding.splittable = RowsAreFree(plan);
  if (binding.splittable) binding.output_bytes = OutputBytes(plan, binding.rows);
}

Duration PlanExecutor::Expect(const Bound& bound, int64_t rows) const {
  const RunCost* const cost = CostOf(costs_, bound.binding.variant);
  if (cost == nullptr) return Duration::zero();
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double, std::micro>(cost->curve.Micros(RunRows(bound, rows))));
}

int64_t PlanExecutor::RunRows(const Bound& bound, int64_t rows) const {
  const Plan& plan = *bound.binding.plan;
  if (options_.allowed_rows.empty() || rows == 0 || !RowsAreFree(plan) ||
      !SizedElements(plan.input_types()))
    return rows;
  const auto allowed =
      std::lower_bound(options_.allowed_rows.begin(), options_.allowed_rows.end(), rows);
  return allowed == options_.allowed_rows.end() ? rows : *allowed;
}

std::string PlanExecutor::Describe(const Bound& bound) const {
  const Binding& binding = bound.binding;
  std::string text = bound.asked->signature->NameOf(*binding.variant);

  const bool padded = binding.key == binding.variant;
  for (const TensorType& type : binding.plan->input_types())
    absl::StrAppend(&text, " ", padded ? "padded" : type.shape.ToString());
  return text;
}

std::string PlanExecutor::Doing(int slot) const {
  const Node* const node = slots_[slot].context->Doing();
  return node == nullptr ? ""
                         : absl::StrCat("node ", Quoted(node->name), " (", node->op->name, ")");
}

size_t PlanExecutor::Slot::Describe(char* text, size_t size) const {
  size_t at = 0;
  const auto add = [&](std::string_view part) {
    const size_t fits = std::min(part.size(), size - at);
    std::copy_n(part.data(), fits, text + at);
    at += fits;
  };
  if (const ModelInfo* const info = model.load(); info != nullptr) {
    char version[20];
    const auto end = std::to_chars(version, version + sizeof version, info->version).ptr;
    add("model '");
    add(info->name);
    add("' version ");
    add({version, static_cast<size_t>(end - version)});
  }
  if (const Node* const node = context->Doing(); node != nullptr) {
    add(", node '");
    add(node->name);
    add("' (");
    add(node->op->name);
    add(")");
  }
  return at;
}

void PlanExecutor::Trim(int slot) { slots_[slot].context->Trim(); }

absl::Status PlanExecutor::Run(int index, absl::Span<const Bound* const> batch,
                               const RunLimits& limits) {
  Slot& slot = slots_[index];
  const Bound& first = *batch[0];
  ExecContext& context = *slot.context;
  slot.model.store(first.asked->model == nullptr ? nullptr : &first.asked->model->info());
  const Running::Scope scope(&slot);
  const cuda::ScopedDeviceUser device_user(options_.device_user.get());
  int64_t rows = 0;
  for (const Bound* bound : batch) {
    rows += bound->binding.rows;
    if (bound->asked->pending != nullptr) FLOE_RETURN_IF_ERROR(bound->asked->pending->Decode());
  }
  FLOE_ASSIGN_OR_RETURN(auto plan, PlanOf(batch));
  const int64_t run_rows = RunRows(first, rows);
  FLOE_RETURN_IF_ERROR(Limited(context.Prepare(plan, run_rows), options_.max_run_bytes));
  const bool gathers = batch.size() > 1 || run_rows != rows;
  for (int i = 0; i < static_cast<int>(first.binding.input_of->size()); ++i) {
    if (gathers && HasRows(*plan, i)) {
      FeedRows(batch, i, rows, run_rows, padding_, context);
    } else {
      Feed(InputOf(first, i), i, context);
    }
  }
  const bool profiled = profiles_next_.load(std::memory_order_relaxed) &&
                        profiles_next_.exchange(false, std::memory_order_relaxed);
  FLOE_RETURN_IF_ERROR(
      Limited(profiled ? RunProfiled(limits, run_rows, &context) : RunWithin(limits, &context),
              options_.max_run_bytes));

  slot.shared = gathers;
  if (!gathers && !first.binding.part) return absl::OkStatus();
  // The proof that rows may be shared is checked against what came out before anyone gets another's
  // rows.
  for (size_t i = 0; i < first.binding.variant->signature().outputs.size(); ++i)
    FLOE_RETURN_IF_ERROR(CheckRows(first, i, context.Output(static_cast<int>(i)), run_rows));
  return absl::OkStatus();
}

absl::Status PlanExecutor::RunProfiled(const RunLimits& limits, int64_t rows,
                                       ExecContext* context) {
  StepProfile profile;
  context->Observe(&profile);
  profile.StartRun();
  absl::Status status = RunWithin(limits, context);
  profile.EndRun();
  context->Observe(nullptr);
  if (!status.ok()) return status;
  auto made = std::make_shared<RunProfile>();
  *made = {rows, limits.clock->Now(), Summarise(profile)};
  const MutexLock lock(profile_mutex_);
  profile_ = std::move(made);
  return status;
}

std::shared_ptr<const RunProfile> PlanExecutor::LastProfile() const {
  const MutexLock lock(profile_mutex_);
  return profile_;
}

void PlanExecutor::Outputs(int slot, const Bound& bound, int64_t first_row, TensorViews* views) {
  const ExecContext& context = *slots_[slot].context;
  for (size_t i = 0; i < bound.binding.variant->signature().outputs.size(); ++i) {
    const TensorView& whole = context.Output(static_cast<int>(i));
    views->push_back(slots_[slot].shared ? RowsOf(whole, first_row, bound.binding.rows) : whole);
  }
}

}  // namespace floe::server
