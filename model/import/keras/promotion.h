// The types that Keras 3 computes in where values of different types meet.
#pragma once

#include <vector>

#include "model/dtype.h"

namespace floe::keras {

// The type of a value. A number written in Python is weak: it gives way to any type of its kind.
struct OperandType {
  DType dtype = DType::kInvalid;
  bool weak = false;
};

// keras.backend.result_type on TensorFlow: the least upper bound in JAX's lattice of types
// (https://docs.jax.dev/en/latest/type_promotion.html). Weak integers alone give int32 and weak
// floats float32. kInvalid where there is none, as for strings beside numbers.
DType ResultType(const std::vector<OperandType>& types);

// The type in which Keras 3 sums numbers of this type up: small ones in 32 bits.
DType SumType(DType dtype);

// The type of a function of real numbers: float32 for whole numbers and bools.
DType FloatingType(DType dtype);

}  // namespace floe::keras
