// Whether a shape that a caller sent is one that a signature takes.
#pragma once

#include "absl/status/status.h"
#include "model/graph.h"

namespace floe {

// INVALID_ARGUMENT names the input, its shape and what the model takes. Nothing is allocated.
absl::Status CheckInputShape(const SignatureTensor& input, const Shape& shape);

}  // namespace floe
