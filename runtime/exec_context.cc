#include "runtime/exec_context.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/denormals.h"
#include "base/status.h"
#include "runtime/evaluate.h"
#include "runtime/plan.h"

namespace floe {
namespace {

// More than any arena that could be meant; the check comes before the multiplication can overflow.
constexpr int64_t kMaxArenaBytes = int64_t{1} << 40;

}  // namespace

// A plan made runnable at one number of rows: memory and views.
struct Frame {
  std::shared_ptr<const Plan> plan;
  int64_t rows = -1;
  std::unique_ptr<DeviceMemory> arena;
  std::vector<TensorView> slots;   // what each slot shows now
  std::vector<TensorView> args;    // of each step: inputs, then outputs
  std::vector<bool> bound;         // input i reads the caller's memory
  std::vector<Tensor> dynamic;     // by slot: values whose size the run settles
  std::vector<std::unique_ptr<ExecContext>> branches;  // by step, two each: contexts of an If's branches
  AlignedBuffer dynamic_scratch;

  absl::Status Grow(const Plan& next, int64_t next_rows) {
    const int64_t sized = std::max<int64_t>(next_rows, 1);  // offsets are laid out for one row at least
    if (next.arena_per_row_ != 0 && sized > (kMaxArenaBytes - next.arena_base_) / next.arena_per_row_) {
      return absl::ResourceExhaustedError(absl::StrCat(next_rows, " rows need more memory than any machine has"));
    }
    const auto bytes = static_cast<size_t>(next.ArenaBytes(sized));
    if (arena != nullptr && arena->size() >= bytes) return absl::OkStatus();
    arena.reset();
    rows = -1;
    FLOE_ASSIGN_OR_RETURN(arena, CpuDevice().Allocate(bytes));
    return absl::OkStatus();
  }

  void* Address(const AffineBytes& offset) const { return arena->data() + offset.At(std::max<int64_t>(rows, 1)); }

  void Show(const Slot& slot, TensorView* view) const {
    view->dtype = slot.type.dtype;
    view->data = nullptr;
    if (!slot.type.shape.known()) return;
    view->shape = slot.type.shape.At(rows);
    const Slot& root = plan->slots_[slot.root];
    if (slot.home == Slot::Home::kConstant) {
      view->data = const_cast<void*>(slot.constant.data());
    } else if (root.home == Slot::Home::kArena || root.home == Slot::Home::kInput) {
      view->data = Address(root.offset);
    }
  }

  void Materialise() {
    slots.resize(plan->slots_.size());
    args.resize(plan->args_);
    bound.assign(plan->input_slots_.size(), false);
    dynamic.clear();
    dynamic.resize(plan->has_dynamic_ ? plan->slots_.size() : 0);
    for (size_t i = 0; i < slots.size(); ++i) Show(plan->slots_[i], &slots[i]);
    for (const Step& step : plan->steps_) {
      TensorView* arg = args.data() + step.first_arg;
      for (int in : step.inputs) *arg++ = slots[in];
      for (int out : step.outputs) *arg++ = slots[out];
    }
  }

  void PointInput(int i, void* data) {
    for (int view : plan->input_views_[i]) slots[view].data = data;
    for (int arg : plan->input_args_[i]) args[arg].data = data;
  }

  std::byte* Scratch(const Step& step) {
    return step.scratch_bytes.base + step.scratch_bytes.per_row > 0 ? static_cast<std::byte*>(Address(step.scratch_offset)) : nullptr;
  }

  absl::Status Run(ThreadPool* pool) {
    for (size_t s = 0; s < plan->steps_.size(); ++s) {
      const Step& step = plan->steps_[s];
      absl::Status status;
      if (step.dynamic || step.kernel == nullptr) {
        status = RunDynamic(step, s, pool);
      } else {
        const absl::Span<const TensorView> all(args.data() + step.first_arg, step.inputs.size() + step.outputs.size());
        status = step.kernel->Run({all.first(step.inputs.size()), all.subspan(step.inputs.size()), Scratch(step), pool});
      }
      if (!status.ok()) return AtNode(plan->signature_->graph().node(step.node), status);
    }
    return absl::OkStatus();
  }

  // A step whose shapes are known only now: inference on the values at hand, memory from the heap.
  absl::Status RunDynamic(const Step& step, size_t s, ThreadPool* pool) {
    const Node& node = plan->signature_->graph().node(step.node);
    TensorView* in = args.data() + step.first_arg;
    for (size_t k = 0; k < step.inputs.size(); ++k) in[k] = slots[step.inputs[k]];
    const absl::Span<const TensorView> inputs(in, step.inputs.size());
    if (step.branches != nullptr) return RunIf(step, s, inputs);
    std::vector<ValueInfo> infos;
    for (const TensorView& view : inputs) {
      ValueInfo info{TensorType{view.dtype, SymShape(view.shape)}, {}, {}};
      if (view.data != nullptr || view.elements() == 0) info.constant = Tensor::Borrow(view.dtype, view.shape, nullptr, view.data);
      infos.push_back(std::move(info));
    }
    FLOE_ASSIGN_OR_RETURN(const Types types, node.op->infer({node, infos}));
    std::vector<TensorView> outputs;
    for (size_t k = 0; k < step.outputs.size(); ++k) {
      if (!types[k].shape.concrete()) return absl::UnimplementedError("the shape of its output depends on the data in a way that is not supported");
      FLOE_RETURN_IF_ERROR(Place(step, k, types[k].dtype, types[k].shape.At(rows), inputs));
      outputs.push_back(slots[step.outputs[k]]);
    }
    if (step.kernel == nullptr) return absl::OkStatus();  // an alias
    return RunKernel(*step.kernel, inputs, outputs, pool);
  }

  absl::Status RunKernel(const Kernel& kernel, absl::Span<const TensorView> inputs, absl::Span<const TensorView> outputs, ThreadPool* pool) {
    std::vector<Shape> in_shapes, out_shapes;
    for (const TensorView& view : inputs) in_shapes.push_back(view.shape);
    for (const TensorView& view : outputs) out_shapes.push_back(view.shape);
    const auto bytes = static_cast<size_t>(kernel.ScratchBytes(in_shapes, out_shapes));
    if (dynamic_scratch.size() < bytes) dynamic_scratch = AlignedBuffer(bytes);
    return kernel.Run({inputs, outputs, dynamic_scratch.data(), pool});
  }

  // Memory for output k: its place in the arena when planned, a tensor of its own otherwise, the input's when an alias.
  absl::Status Place(const Step& step, size_t k, DType dtype, const Shape& shape, absl::Span<const TensorView> inputs) {
    const int out = step.outputs[k];
    TensorView& view = slots[out];
    if (plan->slots_[out].home != Slot::Home::kDynamic) return absl::OkStatus();
    if (step.kernel == nullptr && step.branches == nullptr) {
      view = {dtype, shape, inputs[0].data};
      return absl::OkStatus();
    }
    FLOE_RETURN_IF_ERROR(CheckedElements(shape.dims(), std::max<size_t>(DTypeSize(dtype), 1)).status());
    dynamic[out] = Tensor::Allocate(dtype, shape);
    view = dynamic[out].view();
    return absl::OkStatus();
  }

  absl::Status RunIf(const Step& step, size_t s, absl::Span<const TensorView> inputs) {
    if (inputs[0].dtype != DType::kBool || inputs[0].elements() != 1) return absl::InvalidArgumentError("its predicate is not a bool scalar");
    const size_t branch = *inputs[0].as<bool>() ? 0 : 1;
    if (branches.size() < 2 * plan->steps_.size()) branches.resize(2 * plan->steps_.size());
    std::unique_ptr<ExecContext>& context = branches[2 * s + branch];
    if (context == nullptr) context = std::make_unique<ExecContext>();
    std::vector<Shape> shapes;
    for (const TensorView& view : inputs.subspan(1)) shapes.push_back(view.shape);
    FLOE_ASSIGN_OR_RETURN(std::shared_ptr<const Plan> bound_plan, (*step.branches)[branch]->Bind(shapes));
    const int64_t branch_rows = !bound_plan->has_rows() ? 1 : RowsOf(*(*step.branches)[branch], shapes);
    FLOE_RETURN_IF_ERROR(context->Prepare(bound_plan, branch_rows));
    for (size_t k = 1; k < inputs.size(); ++k) context->BindInput(static_cast<int>(k) - 1, inputs[k].data);
    FLOE_RETURN_IF_ERROR(context->Run());
    for (size_t k = 0; k < step.outputs.size(); ++k) {
      const TensorView& from = context->Output(static_cast<int>(k));
      FLOE_RETURN_IF_ERROR(Place(step, k, from.dtype, from.shape, inputs));
      if (from.bytes() != 0) std::memcpy(slots[step.outputs[k]].data, from.data, from.bytes());
    }
    return absl::OkStatus();
  }

  static int64_t RowsOf(const CompiledSignature& signature, absl::Span<const Shape> shapes) {
    for (size_t i = 0; i < shapes.size(); ++i) {
      if (signature.InputHasRows(static_cast<int>(i)) && shapes[i].rank() > 0) return shapes[i].dim(0);
    }
    return 1;
  }
};

ExecContext::ExecContext(int intra_op_threads) : pool_(std::max(1, intra_op_threads)), frame_(std::make_unique<Frame>()) {}
ExecContext::~ExecContext() = default;

absl::Status ExecContext::Prepare(std::shared_ptr<const Plan> plan, int64_t rows) {
  Frame& frame = *frame_;
  if (frame.plan == plan && frame.rows == rows) {
    for (size_t i = 0; i < frame.bound.size(); ++i) {
      if (!frame.bound[i]) continue;
      frame.bound[i] = false;
      frame.PointInput(static_cast<int>(i), frame.Address(plan->slots()[plan->input_slot(static_cast<int>(i))].offset));
    }
    return absl::OkStatus();
  }
  FLOE_RETURN_IF_ERROR(frame.Grow(*plan, rows));
  if (frame.plan != plan) frame.branches.clear();
  frame.plan = std::move(plan);
  frame.rows = rows;
  frame.Materialise();
  return absl::OkStatus();
}

const TensorView& ExecContext::Input(int i) const { return frame_->slots[frame_->plan->input_slot(i)]; }
const TensorView& ExecContext::Output(int i) const { return frame_->slots[frame_->plan->output_slot(i)]; }

void ExecContext::BindInput(int i, const void* data) {
  frame_->bound[i] = true;
  frame_->PointInput(i, const_cast<void*>(data));
}

absl::Status ExecContext::Run() {
  const ScopedFlushDenormals flush;
  return frame_->Run(&pool_);
}

size_t ExecContext::arena_bytes() const { return frame_->arena == nullptr ? 0 : frame_->arena->size(); }

}  // namespace floe
