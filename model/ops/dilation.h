// The window of a Dilation2D, from its attributes.
#pragma once

#include "model/op_def.h"

namespace floe::ops {

struct Dilation {
  int64_t strides[2] = {1, 1}, rates[2] = {1, 1};  // of rows and columns
  bool same = false;
};

// INVALID_ARGUMENT for strides and rates that are no windows over rows and columns.
absl::StatusOr<Dilation> DilationOf(const Attrs& attrs);

}  // namespace floe::ops
