// What the plain and the blocked Einsum share.
#pragma once

#include <memory>

#include "kernels/cpu/move/grid_copy.h"
#include "kernels/kernel.h"
#include "model/ops/einsum.h"

namespace floe::kernels {

// Of each label: its size, and its step in elements in each operand and in the output (0 where it
// does not occur or is stretched).
struct EinsumStrides {
  IntList sizes, input[2], output;

  EinsumStrides(const ops::EinsumLabels& labels, absl::Span<const Shape> inputs);
};

// Two float32 operands through the packed GEMM: a product for each value of the labels that both
// operands and the output have. Null when the equation has no such form (a label repeated in an
// operand, summed in one operand alone, or nothing summed) or the ranks are not known.
std::unique_ptr<Kernel> MakeEinsumGemm(const KernelArgs& args);

}  // namespace floe::kernels
