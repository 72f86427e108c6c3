// What tells elements apart where equal ones are looked for.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "kernels/cpu/dtypes.h"

namespace floe::kernels {

// NaN is equal to nothing. In a hash table all of them would share a place and be compared with
// each other.
template <class T>
bool IsNan(const T& value) {
  if constexpr (std::is_same_v<T, std::string>)
    return false;
  else
    return static_cast<Compute<T>>(value) != static_cast<Compute<T>>(value);
}

// What tells elements apart. TensorFlow hashes the bits of 16-bit floats, so that -0 and 0 are two;
// of wider floats they are one.
template <class T>
using Key = std::conditional_t<kIsHalf<T>, uint16_t, T>;
template <class T>
const Key<T>& KeyOf(const T& value) {
  if constexpr (kIsHalf<T>)
    return value.bits;
  else
    return value;
}

}  // namespace floe::kernels
