#include "runtime/step_check.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/aligned_buffer.h"
#include "base/status.h"
#include "runtime/memory_fill.h"

namespace floe {
namespace {

// INTERNAL; in debug builds the end of the process, as of an assertion.
absl::Status Wrong(const std::string& what) {
#ifndef NDEBUG
  std::fprintf(stderr, "memory of a step: %s\n", what.c_str());
  std::abort();
#endif
  return absl::InternalError(what);
}

bool Within(size_t index, size_t size) { return index < size; }

struct Bytes {
  const std::byte* begin;
  const std::byte* end;
  bool Meets(const Bytes& o) const {
    return begin < end && o.begin < o.end && begin < o.end && o.begin < end;
  }
};

// From the first byte to the last, with what lies between the lines of a window.
Bytes BytesOf(const TensorView& view, const Slot& slot) {
  const auto* const data = static_cast<const std::byte*>(view.data);
  if (data == nullptr) return {nullptr, nullptr};
  if (slot.line_stride == 0 || view.elements() == 0) return {data, data + view.bytes()};
  const int64_t width = view.shape.dim(view.shape.rank() - 1);
  const int64_t elements = (view.elements() / width - 1) * slot.line_stride + width;
  return {data, data + elements * static_cast<int64_t>(DTypeSize(view.dtype))};
}

// Whether output k begins in memory of its own, and nothing is in it yet.
bool StartsEmpty(const std::vector<Slot>& slots, const Step& step, size_t k) {
  const int s = step.outputs[k];
  return slots[s].home == Slot::Home::kArena && slots[s].root == s &&
         std::none_of(step.inputs.begin(), step.inputs.end(),
                      [&](int in) { return IsWindowOf(slots[in], slots[s]); });
}

// Inputs have data; what the plan has placed in the arena is there, and outputs lie on no input
// that has a place of its own.
absl::Status CheckValues(const StepRun& run) {
  const Step& step = run.step;
  const std::vector<Slot>& slots = run.plan().slots();
  const SlotViews& views = run.memory.views();
  const Arena& arena = run.memory.arena();
  const size_t inputs = step.inputs.size();
  for (size_t k = 0; k < inputs + step.outputs.size(); ++k) {
    const bool input = k < inputs;
    const int s = input ? step.inputs[k] : step.outputs[k - inputs];
    const Slot &slot = slots[s], &root = slots[slot.root];
    const bool packed =
        input && step.kernel != nullptr && !step.kernel->NeedsInput(static_cast<int>(k));
    if (input && !packed && views[s].data == nullptr && views[s].elements() != 0)
      return Wrong(absl::StrCat("input ", k, " has no data"));
    if (slot.home != Slot::Home::kArena || root.home != Slot::Home::kArena) continue;
    const Bytes bytes = BytesOf(views[s], slot);
    const std::byte* const place = arena.Address(root.offset) + slot.window_offset;
    if (bytes.begin != place || bytes.end > arena.data() + arena.size())
      return Wrong(absl::StrCat("value ", k, " lies outside its place in the arena"));
    for (size_t i = 0; !input && i < inputs; ++i) {
      const Slot& read = slots[step.inputs[i]];
      if (read.root != slot.root && bytes.Meets(BytesOf(views[step.inputs[i]], read)))
        return Wrong(absl::StrCat("output ", k - inputs, " lies on input ", i));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckScratch(const StepRun& run) {
  const Step& step = run.step;
  const Arena& arena = run.memory.arena();
  const int64_t needed = run.plan().ScratchBytes(step, run.memory.rows());
  if (needed <= 0) return absl::OkStatus();
  const std::byte* const scratch = arena.Scratch(run.plan(), step);
  const Bytes bytes{scratch, scratch + needed};
  if (scratch == nullptr || scratch < arena.data() || bytes.end > arena.data() + arena.size() ||
      (!step.scratch_by_run && needed > step.scratch_bytes.At(arena.rows())))
    return Wrong(absl::StrCat("it needs ", needed, " bytes of scratch, more than were planned"));
  size_t k = 0;
  for (const std::vector<int>* const values : {&step.inputs, &step.outputs}) {
    for (const int s : *values) {
      if (bytes.Meets(BytesOf(run.memory.views()[s], run.plan().slots()[s])))
        return Wrong(absl::StrCat("its scratch lies on value ", k));
      ++k;
    }
  }
  return absl::OkStatus();
}

MemoryFill FillOf(const StepRun& run) { return run.memory.values().pool()->fill(); }

void FillOutputs(const StepRun& run) {
  for (size_t k = 0; k < run.step.outputs.size(); ++k) {
    const TensorView& view = run.memory.views()[run.step.outputs[k]];
    if (StartsEmpty(run.plan().slots(), run.step, k))
      FillMemory(FillOf(run), view.data, AlignUp(view.bytes()));
  }
}

}  // namespace

absl::Status CheckStep(const StepRun& run) {
  const size_t count = run.memory.views().all().size();
  if (run.memory.rows() < 0 || run.memory.arena().size() == 0 || count != run.plan().slots().size())
    return Wrong("the frame was not prepared");
  for (const std::vector<int>* const values : {&run.step.inputs, &run.step.outputs}) {
    for (const int s : *values) {
      if (!Within(s, count) || !Within(run.plan().slots()[s].root, count))
        return Wrong(absl::StrCat("slot ", s, " of ", count));
    }
  }
  FLOE_RETURN_IF_ERROR(CheckValues(run));
  FillOutputs(run);
  return absl::OkStatus();
}

absl::Status CheckArguments(const StepRun& run, absl::Span<const TensorView> args) {
  const Step& step = run.step;
  const size_t count = step.inputs.size() + step.outputs.size();
  if (step.first_arg < 0 || step.first_arg + count > args.size())
    return Wrong(absl::StrCat("arguments from ", step.first_arg, " of ", args.size()));
  for (size_t k = 0; k < count; ++k) {
    const size_t inputs = step.inputs.size();
    const int s = k < inputs ? step.inputs[k] : step.outputs[k - inputs];
    const TensorView &arg = args[step.first_arg + k], &view = run.memory.views()[s];
    if (arg.data != view.data || arg.shape != view.shape || arg.dtype != view.dtype)
      return Wrong(absl::StrCat("argument ", k, " is not what its slot shows"));
  }
  return CheckScratch(run);
}

absl::Status RunKernelChecked(const StepRun& run, const KernelContext& context,
                              int64_t scratch_bytes) {
  const MemoryFill fill = FillOf(run);
  const auto bytes = static_cast<size_t>(scratch_bytes);
  FillMemory(fill, context.scratch, AlignUp(bytes));
  FLOE_RETURN_IF_ERROR(run.step.kernel->Run(context));
  if (!StillFilled(fill, context.scratch, bytes, AlignUp(bytes)))
    return Wrong("it wrote behind its scratch");
  return absl::OkStatus();
}

absl::Status CheckOutputs(const StepRun& run) {
  for (size_t k = 0; k < run.step.outputs.size(); ++k) {
    const TensorView& view = run.memory.views()[run.step.outputs[k]];
    const size_t bytes = view.bytes();
    if (StartsEmpty(run.plan().slots(), run.step, k) &&
        !StillFilled(FillOf(run), view.data, bytes, AlignUp(bytes)))
      return Wrong(absl::StrCat("it wrote behind output ", k));
  }
  return absl::OkStatus();
}

}  // namespace floe
