#include "runtime/frame.h"

#include <algorithm>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/status.h"
#include "model/handle.h"
#include "runtime/evaluate.h"
#include "runtime/run_observer.h"

namespace floe {
namespace {

// More than any arena that could be meant; the check comes before the multiplication can overflow.
constexpr int64_t kMaxArenaBytes = int64_t{1} << 40;
constexpr int64_t kMaxRows = INT32_MAX;
constexpr size_t kSmallArena = size_t{64} << 10;  // kept by contexts that are idle

#ifdef NDEBUG
constexpr bool kDebugBuild = false;
#else
constexpr bool kDebugBuild = true;
#endif

}  // namespace

absl::Status Frame::Grow(const Plan& next, int64_t next_rows) {
  const int64_t sized =
      std::max<int64_t>(next_rows, 1);  // offsets are laid out for one row at least
  if (sized > kMaxRows || (next.arena_per_row_ != 0 &&
                           sized > (kMaxArenaBytes - next.arena_base_) / next.arena_per_row_)) {
    return absl::ResourceExhaustedError(
        absl::StrCat(next_rows, " rows need more memory than any machine has"));
  }
  const int64_t scratch = next.RunScratchBytes(next_rows);
  FLOE_RETURN_IF_ERROR(CheckBlockBytes(scratch));
  // Never nothing: values without elements have an address too.
  const size_t bytes = std::max(
      AlignUp(static_cast<size_t>(next.arena_base_ + next.arena_per_row_ * sized + scratch)),
      kAlignment);
  // What the last run left is no part of the next one, nor is an arena larger than that needs.
  for (Tensor& value : dynamic) value = Tensor();
  arena_charge = MemoryCharge();
  rows = -1;
  FLOE_RETURN_IF_ERROR(CheckBlockBytes(static_cast<int64_t>(bytes)));
  arena_charge = MemoryCharge(static_cast<int64_t>(bytes));
  if (arena.size() >= bytes) return absl::OkStatus();
  arena = AlignedBuffer();
  arena_share = MemoryShare();
  FLOE_ASSIGN_OR_RETURN(arena_share, TakeMemory(static_cast<int64_t>(bytes)));
  return CatchOutOfMemory([&]() -> absl::Status {
    arena = AlignedBuffer(bytes);
    return absl::OkStatus();
  });
}

void Frame::Show(const Slot& slot, TensorView* view) const {
  view->dtype = slot.type.dtype;
  view->shape = slot.type.shape.known() ? slot.type.shape.At(rows) : Shape();
  view->data = nullptr;
  if (!slot.type.shape.known()) return;
  if (slot.home == Slot::Home::kDynamic) return;  // the step that makes it says where it lies
  const Slot& root = plan->slots_[slot.root];
  if (slot.home == Slot::Home::kConstant) {
    view->data = const_cast<void*>(slot.constant.data());
  } else if (root.home == Slot::Home::kArena || root.home == Slot::Home::kInput) {
    view->data = static_cast<std::byte*>(Address(root.offset)) + slot.window_offset;
  }
}

// constant + per_row * rows, as the dtype wraps.
void Frame::WriteAffine(int slot) {
  const auto write = [&]([[maybe_unused]] auto zero) {
    using T = decltype(zero);
    using U = std::make_unsigned_t<T>;
    const Slot& from = plan->slots_[slot];
    for (int64_t i = 0; i < from.constant.elements(); ++i) {
      slots[slot].as<T>()[i] =
          static_cast<T>(static_cast<U>(from.constant.as<T>()[i]) +
                         static_cast<U>(from.per_row.as<T>()[i]) * static_cast<U>(rows));
    }
  };
  if (slots[slot].dtype == DType::kInt32) {
    write(int32_t{0});
  } else {
    write(int64_t{0});
  }
}

void Frame::Materialise() {
  FillMemory(pool->fill(), arena.data(), arena.size());
  slots.resize(plan->slots_.size());
  args.resize(plan->args_);
  bound.assign(plan->input_slots_.size(), false);
  donatable.assign(plan->input_slots_.size(), false);
  fed.assign(plan->input_slots_.size(), false);
  settled.clear();
  dynamic.clear();
  dynamic.resize(plan->has_dynamic_ ? plan->slots_.size() : 0);
  for (size_t i = 0; i < slots.size(); ++i) Show(plan->slots_[i], &slots[i]);
  for (int slot : plan->affine_slots_) WriteAffine(slot);
  for (const Step& step : plan->steps_) {
    TensorView* arg = args.data() + step.first_arg;
    for (int in : step.inputs) *arg++ = slots[in];
    for (int out : step.outputs) *arg++ = slots[out];
  }
}

void Frame::Unbind() {
  for (size_t i = 0; i < bound.size(); ++i) {
    fed[i] = false;
    if (bound[i]) {
      bound[i] = false;
      donatable[i] = false;
      PointInput(static_cast<int>(i), Address(plan->slots_[plan->input_slots_[i]].offset));
    }
    const TensorView& place = slots[plan->input_slots_[i]];
    if (DTypeSize(place.dtype) != 0) FillMemory(pool->fill(), place.data, place.bytes());
  }
}

absl::Status Frame::Prepare(std::shared_ptr<const Plan> next, int64_t next_rows) {
  if (plan == next && rows == next_rows) {
    Unbind();
    return absl::OkStatus();
  }
  if (plan != next) nested.clear();  // their memory counts as the run's
  if (absl::Status grown = Grow(*next, next_rows); !grown.ok()) {
    Forget();
    return grown;
  }
  plan = std::move(next);
  rows = next_rows;
  Materialise();
  return absl::OkStatus();
}

bool Frame::PrepareAgain(absl::Span<const TensorView> inputs, absl::Span<const ListTypePtr> lists) {
  if (plan == nullptr || rows < 0 || inputs.size() != plan->input_slots_.size()) return false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (slots[plan->input_slots_[i]].shape != inputs[i].shape ||
        !SameLists(plan->input_types_[i].list, lists[i]))
      return false;
  }
  Unbind();
  return true;
}

void Frame::BindInput(int i, const void* data, bool may_take) {
  fed[i] = bound[i] = true;
  donatable[i] = may_take;
  PointInput(i, const_cast<void*>(data));
}

void Frame::PointInput(int i, void* data) {
  if (data == nullptr) data = arena.data();  // an input without elements
  for (int view : plan->input_views_[i]) slots[view].data = data;
  for (int arg : plan->input_args_[i]) args[arg].data = data;
}

std::byte* Frame::Scratch(const Step& step) const {
  if (step.scratch_by_run)
    return static_cast<std::byte*>(Address({plan->arena_base_, plan->arena_per_row_}));
  return step.scratch_bytes.base + step.scratch_bytes.per_row > 0
             ? static_cast<std::byte*>(Address(step.scratch_offset))
             : nullptr;
}

// Which inputs the step may take over: values of the run itself at their last read, and the
// caller's if it said so.
uint64_t Frame::Donatable(const Step& step) const {
  uint64_t mask = step.last_reads;
  for (size_t k = 0; k < step.inputs.size() && k < 64; ++k) {
    const int root = plan->slots_[step.inputs[k]].root;
    if (plan->slots_[root].home != Slot::Home::kInput) continue;
    const auto input = std::find(plan->input_slots_.begin(), plan->input_slots_.end(), root) -
                       plan->input_slots_.begin();
    if (!donatable[input]) mask &= ~(uint64_t{1} << k);
  }
  return mask;
}

absl::Status Frame::Run(ThreadPool* threads) {
  if (plan == nullptr) return absl::InternalError("no plan was prepared");
  absl::Status status = RunSteps(threads);
  doing.store(nullptr, std::memory_order_relaxed);
  return status;
}

absl::Status Frame::RunSteps(ThreadPool* threads) {
  // The memory of such an input holds what another request left there.
  if (const auto missing = std::find(fed.begin(), fed.end(), false); missing != fed.end())
    return absl::InternalError(
        absl::StrCat("input ", missing - fed.begin(), " of the plan was not fed"));
  for (Tensor& value : dynamic)
    value = Tensor();  // the last run's outputs make room for this one's
  const Budget* const budget = Budget::Current();
  for (size_t s = 0; s < plan->steps_.size(); ++s) {
    const Step& step = plan->steps_[s];
    if (budget != nullptr) FLOE_RETURN_IF_ERROR(budget->CheckTime());
    doing.store(&plan->program_->graph.node(step.node), std::memory_order_relaxed);
    NoteNode("running", plan->program_->graph.node(step.node));
    const absl::Status status =
        observer == nullptr ? RunStep(step, s, threads) : RunObserved(step, s, threads);
    if (!status.ok()) return AtNode(plan->program_->graph.node(step.node), status);
  }
  return absl::OkStatus();
}

absl::Status Frame::RunObserved(const Step& step, size_t s, ThreadPool* threads) {
  const ObservedStep observed{plan, s, rows, slots};
  observer->StepStarts(observed);
  absl::Status status = RunStep(step, s, threads);
  observer->StepEnds(observed);
  return status;
}

absl::Status Frame::RunStep(const Step& step, size_t s, ThreadPool* threads) {
  const bool checked = kDebugBuild || pool->fill() != MemoryFill::kNone;
  if (checked) {
    FLOE_RETURN_IF_ERROR(CheckStep(step));
    FillOutputs(step);
  }
  if (step.dynamic || step.kernel == nullptr) {
    const absl::Status status = RunDynamic(step, s, threads);
    Release(step);
    FLOE_RETURN_IF_ERROR(status);
  } else {
    const absl::Span<const TensorView> all(args.data() + step.first_arg,
                                           step.inputs.size() + step.outputs.size());
    const KernelContext context{.inputs = all.first(step.inputs.size()),
                                .outputs = all.subspan(step.inputs.size()),
                                .scratch = Scratch(step),
                                .pool = threads,
                                .line_strides = step.line_strides};
    FLOE_RETURN_IF_ERROR(
        checked ? RunKernel(step, context, static_cast<size_t>(plan->ScratchBytes(step, rows)))
                : step.kernel->Run(context));
  }
  return checked ? CheckOutputs(step) : absl::OkStatus();
}

// Values of the pool that nobody reads after this step make room for the next ones.
void Frame::Release(const Step& step) {
  for (size_t k = 0; k < step.inputs.size() && k < 64; ++k) {
    const int root = plan->slots_[step.inputs[k]].root;
    if ((step.last_reads >> k & 1) != 0 && plan->slots_[root].home == Slot::Home::kDynamic)
      dynamic[root] = Tensor();
  }
}

void Frame::Drop() {
  nested.clear();
  settled.clear();
  for (Tensor& value : dynamic) value = Tensor();
  dynamic_scratch = Tensor();
  if (arena.size() <= kSmallArena) return;
  plan.reset();  // is prepared again before the next run
  rows = -1;
  arena = AlignedBuffer();
  arena_share = MemoryShare();
  arena_charge = MemoryCharge();
}

absl::Status Frame::GrowScratch(int64_t bytes) {
  if (bytes <= (dynamic_scratch.valid() ? dynamic_scratch.elements() : 0)) return absl::OkStatus();
  dynamic_scratch = Tensor();
  FLOE_ASSIGN_OR_RETURN(dynamic_scratch, pool->Allocate(DType::kUInt8, Shape{bytes}));
  return absl::OkStatus();
}

void Frame::Forget() {
  Drop();
  plan = nullptr;
  rows = -1;
  fed.clear();
  bound.clear();
  donatable.clear();
}

// A step whose shapes are known only now: inference on the values at hand, memory from the pool.
absl::Status Frame::RunDynamic(const Step& step, size_t s, ThreadPool* threads) {
  const Node& node = plan->program_->graph.node(step.node);
  TensorView* in = args.data() + step.first_arg;
  for (size_t k = 0; k < step.inputs.size(); ++k) in[k] = slots[step.inputs[k]];
  const absl::Span<const TensorView> inputs(in, step.inputs.size());
  if (step.programs != nullptr) return RunControl(step, s, inputs, threads);
  if (node.op->allocates) return RunAllocating(step, inputs, threads);
  settled.resize(plan->steps_.size());
  Settled& result = settled[s];
  if (!StillHolds(result, inputs)) FLOE_RETURN_IF_ERROR(Settle(step, inputs, &result));
  if (node.op->alias) {
    slots[step.outputs[0]] = result.outputs[0];
    slots[step.outputs[0]].data = inputs[0].data;
    return absl::OkStatus();
  }
  TensorView* const out = in + step.inputs.size();
  for (size_t k = 0; k < step.outputs.size(); ++k) {
    FLOE_RETURN_IF_ERROR(Place(step, k, result.outputs[k].dtype, result.outputs[k].shape));
    out[k] = slots[step.outputs[k]];
  }
  FLOE_RETURN_IF_ERROR(GrowScratch(result.scratch_bytes));
  const KernelContext context{inputs,
                              absl::Span<const TensorView>(out, step.outputs.size()),
                              static_cast<std::byte*>(dynamic_scratch.mutable_data()),
                              threads,
                              nullptr,
                              Donatable(step)};
  FLOE_RETURN_IF_ERROR(pool->fill() == MemoryFill::kNone
                           ? step.kernel->Run(context)
                           : RunKernel(step, context, static_cast<size_t>(result.scratch_bytes)));
  return PayForStrings(step);
}

absl::Status Frame::PayForStrings(const Step& step) {
  for (const int out : step.outputs) {
    if (!dynamic[out].valid()) continue;
    FLOE_ASSIGN_OR_RETURN(dynamic[out], WithPaidStrings(std::move(dynamic[out])));
  }
  return absl::OkStatus();
}

bool Frame::StillHolds(const Settled& last, absl::Span<const TensorView> inputs) const {
  if (last.needs_values || last.outputs.empty() || last.inputs.size() != inputs.size())
    return false;
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (inputs[k].shape != last.inputs[k]) return false;
  }
  return true;
}

absl::Status Frame::Settle(const Step& step, absl::Span<const TensorView> inputs,
                           Settled* result) const {
  const Node& node = plan->program_->graph.node(step.node);
  std::vector<ValueInfo> infos;
  for (const TensorView& view : inputs)
    infos.push_back({TensorType{view.dtype, SymShape(view.shape)}, {}, {}});
  const auto tell = [&](size_t k) {
    if (inputs[k].data != nullptr || inputs[k].elements() == 0)
      infos[k].constant = Tensor::Borrow(inputs[k].dtype, inputs[k].shape, nullptr, inputs[k].data);
  };
  const auto concrete = [](const TensorType& type) { return type.shape.concrete(); };
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (plan->slots_[step.inputs[k]].home == Slot::Home::kConstant) tell(k);
  }
  absl::StatusOr<Types> types = absl::UnknownError("");
  if (!result->needs_values) {
    types = InferTypes(node, infos);
    result->needs_values = !types.ok() || !std::all_of(types->begin(), types->end(), concrete);
  }
  if (result->needs_values) {
    for (size_t k = 0; k < inputs.size(); ++k) tell(k);
    types = InferTypes(node, infos);
    FLOE_RETURN_IF_ERROR(types.status());
  }
  result->inputs.clear();
  result->outputs.clear();
  std::vector<Shape> in_shapes, out_shapes;
  for (const TensorView& view : inputs) in_shapes.push_back(view.shape);
  for (size_t k = 0; k < step.outputs.size(); ++k) {
    const TensorType& type = (*types)[k];
    if (!concrete(type))
      return absl::InternalError(
          absl::StrCat("the shape of output ", k, " is still open: ", type.shape.ToString()));
    out_shapes.push_back(type.shape.At(rows));
    result->outputs.push_back({type.dtype, out_shapes.back(), nullptr});
  }
  result->scratch_bytes =
      step.kernel == nullptr ? 0 : step.kernel->ScratchBytes(in_shapes, out_shapes);
  FLOE_RETURN_IF_ERROR(CheckBlockBytes(result->scratch_bytes));
  result->inputs = std::move(in_shapes);
  return absl::OkStatus();
}

absl::Status Frame::RunAllocating(const Step& step, absl::Span<const TensorView> inputs,
                                  ThreadPool* threads) {
  HeapOutputs outputs(pool.get());
  FLOE_RETURN_IF_ERROR(step.kernel->Run({inputs, {}, nullptr, threads, &outputs, Donatable(step)}));
  if (outputs.tensors.size() < step.outputs.size())
    return absl::InternalError("the kernel left an output without memory");
  for (size_t k = 0; k < step.outputs.size(); ++k) {
    dynamic[step.outputs[k]] = std::move(outputs.tensors[k]);
    slots[step.outputs[k]] = dynamic[step.outputs[k]].view();
  }
  return PayForStrings(step);
}

// Memory for output k: its place in the arena when planned, a tensor of its own otherwise.
absl::Status Frame::Place(const Step& step, size_t k, DType dtype, const Shape& shape) {
  const int out = step.outputs[k];
  if (plan->slots_[out].home != Slot::Home::kDynamic) {
    // What the run's own sizes say must be what was planned without them: kernels write that much.
    if (slots[out].dtype == dtype && slots[out].shape == shape) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("output ", k, " has shape ", shape.ToString(),
                                            ", planned was ", slots[out].shape.ToString()));
  }
  FLOE_ASSIGN_OR_RETURN(dynamic[out], pool->Allocate(dtype, shape));
  slots[out] = dynamic[out].view();
  return absl::OkStatus();
}

// Copies a finished value into output k. `take`: its handles may be moved out.
absl::Status Frame::Give(const Step& step, size_t k, const TensorView& value, bool take) {
  FLOE_RETURN_IF_ERROR(Place(step, k, value.dtype, value.shape));
  const TensorView& to = slots[step.outputs[k]];
  if (take && IsHandle(value.dtype)) {
    std::move(value.as<Handle>(), value.as<Handle>() + value.elements(), to.as<Handle>());
  } else {
    CopyElements(value, to.data);
  }
  return absl::OkStatus();
}

}  // namespace floe
