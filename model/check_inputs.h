// Which dtypes the inputs of an op may have together.
#pragma once

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "model/op_def.h"

namespace floe {

// INVALID_ARGUMENT naming the input when its dtype is not one the op takes, or not that of another
// input which must be of the same. Inputs whose dtype is not known pass, and so do ops that are
// without OpDef::input_types. What passes may still be a dtype that no kernel is for.
absl::Status CheckInputTypes(const Node& node, absl::Span<const ValueInfo> inputs);

}  // namespace floe
