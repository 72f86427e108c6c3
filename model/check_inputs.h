// What the inputs of an op may be together, by OpDef::input_types. An entry for each input:
//
//   float32      this dtype
//   T            any dtype, one for all inputs with this letter; i to n: int32 or int64
//   T*           as many of these as there are; ?: any number, of any dtypes
//   T[n,_,4]     of rank 3: dims of one letter are equal, 4 is a number, _ any size; []: a scalar
#pragma once

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "model/op_def.h"

namespace floe {

// INVALID_ARGUMENT naming the input that is not what the op takes, or not as another input is. What
// is not known passes, and so do ops that are without OpDef::input_types. A dtype that passes may
// still be one that no kernel is for.
absl::Status CheckInputs(const Node& node, absl::Span<const ValueInfo> inputs);

// The types of the outputs, of inputs that pass.
absl::StatusOr<Types> InferChecked(const Node& node, absl::Span<const ValueInfo> inputs);

}  // namespace floe
