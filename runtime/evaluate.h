// Makes kernels. Runs one node at once, outside any plan: constant folding and shape arithmetic use
// the kernels themselves.
#pragma once

#include <vector>

#include "base/work_note.h"
#include "kernels/kernel.h"
#include "runtime/value_pool.h"

namespace floe {

// A kernel for the node on the device of the options. UNIMPLEMENTED when it has none for the dtype;
// the message has op and dtype, not the node.
absl::StatusOr<std::unique_ptr<Kernel>> MakeKernel(const Node& node,
                                                   absl::Span<const ValueInfo> inputs,
                                                   const KernelOptions& options);

// INVALID_ARGUMENT or RESOURCE_EXHAUSTED for a rank or size that no value may have: a negative dim,
// more elements than fit, more bytes than the current budget's limit for one value. What is not
// known yet passes.
absl::Status CheckType(const TensorType& type);

// The node's inference, with what it gives checked: one type an output, each as CheckType says.
absl::StatusOr<Types> InferTypes(const Node& node, absl::Span<const ValueInfo> inputs);

// A tensor of its own for a value, within the current budget.
absl::StatusOr<Tensor> NewValue(DType dtype, const Shape& shape);

// Bytes that the tensor holds, those of its strings included.
int64_t HeldMemory(const TensorView& view);

// The same tensor, which from now on holds what its strings take of the budgets of the run and of
// the process as well. What a kernel writes into strings is only known afterwards.
absl::StatusOr<Tensor> WithPaidStrings(Tensor tensor);

// Outputs as tensors of their own, from `pool` or, without one, from the heap. The pool outlives
// this object, not the tensors.
class HeapOutputs : public OutputAllocator {
 public:
  explicit HeapOutputs(ValuePool* pool = nullptr) : pool_(pool) {}
  absl::StatusOr<TensorView> Allocate(int output, DType dtype, const Shape& shape) override;
  std::vector<Tensor> tensors;  // by output

 private:
  ValuePool* const pool_;
};

// On the host, whatever the device of the options. `out` must be concrete unless the op allocates
// its outputs. Errors are the kernel's.
absl::StatusOr<std::vector<Tensor>> EvaluateNode(const Node& node, absl::Span<const Tensor> inputs,
                                                 absl::Span<const TensorType> out,
                                                 const KernelOptions& options);

// Ops that cannot be run here: stateful ones, subgraphs, inputs.
bool CanEvaluate(const Node& node);

// "node 'name' (Op): reason".
absl::Status AtNode(const Node& node, const absl::Status& status);

// Notes that the node is being worked on, where this process keeps a note.
inline void NoteNode(const char* verb, const Node& node) {
  if (WorkNote* const note = WorkNote::Current()) note->Do(verb, node.name, node.op->name);
}

}  // namespace floe
