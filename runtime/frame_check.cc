// What tests and debug builds ask of every step of a run. Its indices and addresses must be those
// of the plan, and it reads and writes no memory but its own.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "base/aligned_buffer.h"
#include "base/status.h"
#include "runtime/frame.h"
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

}  // namespace

absl::Status Frame::CheckStep(const Step& step) const {
  if (plan == nullptr || rows < 0 || arena.size() == 0 || slots.size() != plan->slots_.size())
    return Wrong("the frame was not prepared");
  std::vector<int> touched = step.inputs;
  touched.insert(touched.end(), step.outputs.begin(), step.outputs.end());
  if (step.first_arg < 0 ||
      (!touched.empty() && !Within(step.first_arg + touched.size() - 1, args.size())))
    return Wrong(absl::StrCat("arguments from ", step.first_arg, " of ", args.size()));
  for (int s : touched) {
    if (!Within(s, slots.size()) || !Within(plan->slots_[s].root, slots.size()))
      return Wrong(absl::StrCat("slot ", s, " of ", slots.size()));
  }
  std::vector<TensorView> views;
  views.reserve(touched.size());
  for (int s : touched) views.push_back(slots[s]);
  FLOE_RETURN_IF_ERROR(CheckValues(step, views));
  if (step.dynamic || step.kernel == nullptr) return absl::OkStatus();
  for (size_t k = 0; k < views.size(); ++k) {
    const TensorView& arg = args[step.first_arg + k];
    if (arg.data != views[k].data || arg.shape != views[k].shape || arg.dtype != views[k].dtype)
      return Wrong(absl::StrCat("argument ", k, " is not what its slot shows"));
  }
  return CheckScratch(step, views);
}

// Inputs have data; what the plan has placed in the arena is there, and outputs lie on no input
// that has a place of its own.
absl::Status Frame::CheckValues(const Step& step, absl::Span<const TensorView> views) const {
  const Bytes whole{arena.data(), arena.data() + arena.size()};
  for (size_t k = 0; k < views.size(); ++k) {
    const bool input = k < step.inputs.size();
    const int s = input ? step.inputs[k] : step.outputs[k - step.inputs.size()];
    const Slot &slot = plan->slots_[s], &root = plan->slots_[slot.root];
    const bool packed =
        input && step.kernel != nullptr && !step.kernel->NeedsInput(static_cast<int>(k));
    if (input && !packed && views[k].data == nullptr && views[k].elements() != 0)
      return Wrong(absl::StrCat("input ", k, " has no data"));
    if (slot.home != Slot::Home::kArena || root.home != Slot::Home::kArena) continue;
    const Bytes bytes = BytesOf(views[k], slot);
    const auto* const place = static_cast<std::byte*>(Address(root.offset)) + slot.window_offset;
    if (bytes.begin != place || bytes.end > whole.end)
      return Wrong(absl::StrCat("value ", k, " lies outside its place in the arena"));
    for (size_t i = 0; !input && i < step.inputs.size(); ++i) {
      const Slot& read = plan->slots_[step.inputs[i]];
      if (read.root != slot.root && bytes.Meets(BytesOf(views[i], read)))
        return Wrong(absl::StrCat("output ", k - step.inputs.size(), " lies on input ", i));
    }
  }
  return absl::OkStatus();
}

absl::Status Frame::CheckScratch(const Step& step, absl::Span<const TensorView> views) const {
  const int64_t needed = plan->ScratchBytes(step, rows);
  const std::byte* const scratch = Scratch(step);
  if (needed <= 0) return absl::OkStatus();
  const Bytes bytes{scratch, scratch + needed};
  if (scratch == nullptr || scratch < arena.data() || bytes.end > arena.data() + arena.size() ||
      (!step.scratch_by_run && needed > step.scratch_bytes.At(SizedRows())))
    return Wrong(absl::StrCat("it needs ", needed, " bytes of scratch, more than were planned"));
  for (size_t k = 0; k < views.size(); ++k) {
    const int s = k < step.inputs.size() ? step.inputs[k] : step.outputs[k - step.inputs.size()];
    if (bytes.Meets(BytesOf(views[k], plan->slots_[s])))
      return Wrong(absl::StrCat("its scratch lies on value ", k));
  }
  return absl::OkStatus();
}

void Frame::FillOutputs(const Step& step) const {
  for (size_t k = 0; k < step.outputs.size(); ++k) {
    const TensorView& view = slots[step.outputs[k]];
    if (StartsEmpty(plan->slots_, step, k))
      FillMemory(pool->fill(), view.data, AlignUp(view.bytes()));
  }
}

absl::Status Frame::CheckOutputs(const Step& step) const {
  for (size_t k = 0; k < step.outputs.size(); ++k) {
    const TensorView& view = slots[step.outputs[k]];
    const size_t bytes = view.bytes();
    if (StartsEmpty(plan->slots_, step, k) &&
        !StillFilled(pool->fill(), view.data, bytes, AlignUp(bytes)))
      return Wrong(absl::StrCat("it wrote behind output ", k));
  }
  return absl::OkStatus();
}

absl::Status Frame::RunKernel(const Step& step, const KernelContext& context,
                              size_t scratch_bytes) const {
  FillMemory(pool->fill(), context.scratch, AlignUp(scratch_bytes));
  FLOE_RETURN_IF_ERROR(step.kernel->Run(context));
  if (!StillFilled(pool->fill(), context.scratch, scratch_bytes, AlignUp(scratch_bytes)))
    return Wrong("it wrote behind its scratch");
  return absl::OkStatus();
}

}  // namespace floe
