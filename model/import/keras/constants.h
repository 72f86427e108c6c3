// Plain values of a configuration as tensors.
#pragma once

#include "absl/status/statusor.h"
#include "model/import/keras/json.h"
#include "model/tensor.h"

namespace floe::keras {

struct Constant {
  Tensor tensor;                  // bool, int64, float64 or string
  DType dtype = DType::kInvalid;  // what it is to be cast to
  bool weak = false;              // a mere number in Python, which takes the type of what it meets
};

// A number, a string, a bool, nested lists of these, or what Keras 3 writes for an array
// (`__numpy__`, `__tensor__`), in its type. Numbers in a list are int32, int64 where they need it,
// or float32. INVALID_ARGUMENT for ragged lists and anything else; RESOURCE_EXHAUSTED past the
// thread's budgets.
absl::StatusOr<Constant> ConstantOf(const Json& json);

}  // namespace floe::keras
