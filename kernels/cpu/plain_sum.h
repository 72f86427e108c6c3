// How the plain kernels sum: floating types in float64, complex ones in complex128, integers with
// wrap-around.
#pragma once

#include <complex>
#include <cstdint>
#include <type_traits>

#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/gemm/activation.h"

namespace floe::kernels {

template <typename T>
using PlainSum = std::conditional_t<kIsComplex<T>, std::complex<double>,
                                    std::conditional_t<std::is_integral_v<T>, uint64_t, double>>;

template <typename T>
PlainSum<T> PlainWide(T value) {
  return static_cast<PlainSum<T>>(static_cast<Compute<T>>(value));
}

template <typename T>
T PlainNarrow(PlainSum<T> sum) {
  return static_cast<T>(static_cast<Compute<T>>(sum));
}

// Rounds once, then adds the bias and the residual and applies the activation in T. Both may be
// null.
template <typename T>
T PlainFinish(const Epilogue& epilogue, PlainSum<T> sum, const T* bias,
              const T* residual = nullptr) {
  T y = PlainNarrow<T>(sum);
  if (bias != nullptr) y = PlainNarrow<T>(PlainWide(y) + PlainWide(*bias));
  if (residual != nullptr) y = PlainNarrow<T>(PlainWide(y) + PlainWide(*residual));
  if constexpr (kIsComplex<T>)
    return y;
  else
    return static_cast<T>(ActivatePlain(epilogue, static_cast<Compute<T>>(y)));
}

}  // namespace floe::kernels
