// Slices that take the same elements of every line (a run along the last dimension).
#pragma once

#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "model/graph.h"
#include "model/op_def.h"

namespace floe {

// The elements of each line in front of those that a Slice or StridedSlice takes. Nothing where it
// does not take all lines and elements side by side, or constants do not say so. `out`: the shape
// of its result.
std::optional<int64_t> LineSliceStart(const Node& node, absl::Span<const ValueInfo> inputs,
                                      const SymShape& out);

}  // namespace floe
