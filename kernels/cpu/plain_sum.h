// How the plain kernels sum: floating types in float64, integers with wrap-around.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/cpu/activation.h"

namespace floe::kernels {

template <typename T>
using PlainSum = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;

template <typename T>
PlainSum<T> PlainProduct(T a, T b) {
  return static_cast<PlainSum<T>>(a) * static_cast<PlainSum<T>>(b);
}

// Rounds once, then adds the bias and applies the activation in T.
template <typename T>
T PlainFinish(const Epilogue& epilogue, PlainSum<T> sum, const T* bias) {
  T y = static_cast<T>(sum);
  if (bias != nullptr)
    y = static_cast<T>(static_cast<PlainSum<T>>(y) + static_cast<PlainSum<T>>(*bias));
  return ActivatePlain(epilogue, y);
}

}  // namespace floe::kernels
