// A number as a scalar tensor.
#pragma once

#include <cstdint>
#include <optional>

#include "model/tensor.h"

namespace floe {

// A scalar of that dtype: integers and bool (0 and 1) hold the number exactly. Floating dtypes hold
// the nearest they have, the halves by way of float32. Complex ones have it as their real part.
// nullopt when the dtype has no such number (300 as uint8, 0.5 or NaN as an integer) or none at
// all (strings, handles).
std::optional<Tensor> IntegerScalar(DType dtype, int64_t value);
std::optional<Tensor> RealScalar(DType dtype, double value);

}  // namespace floe
