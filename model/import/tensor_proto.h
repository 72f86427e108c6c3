// tensorflow.TensorProto -> Tensor.
#pragma once

#include "absl/status/statusor.h"
#include "model/tensor.h"

namespace tensorflow {
class TensorProto;
class TensorShapeProto;
}  // namespace tensorflow

namespace floe {

// Takes the bytes of tensor_content out of the proto, and long lists, instead of copying them.
// Typed values may be fewer than the elements: the last one repeats (none at all: zeros).
// INVALID_ARGUMENT names shape, bytes and what was expected.
absl::StatusOr<Tensor> TensorFromProto(tensorflow::TensorProto* proto);

// Negative sizes are unknown dims.
SymShape ShapeFromProto(const tensorflow::TensorShapeProto& proto);

}  // namespace floe
