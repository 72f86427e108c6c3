// The equation of Einsum, resolved for the ranks of its operands.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "model/op_def.h"

namespace floe::ops {

// Axes are numbered labels; an axis under an ellipsis gets a label by its place from the right.
struct EinsumLabels {
  std::vector<std::vector<int>> inputs;  // one label for each axis
  std::vector<int> output;
  int count = 0;                 // labels are [0, count)
  std::vector<bool> broadcasts;  // by label: from an ellipsis, so that sizes of 1 stretch
};

// INVALID_ARGUMENT when the equation has no "->", names axes that an operand lacks, or repeats an
// output label.
absl::StatusOr<EinsumLabels> ParseEinsum(const std::string& equation, absl::Span<const int> ranks);

}  // namespace floe::ops
