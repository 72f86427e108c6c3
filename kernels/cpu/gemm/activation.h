// The plain form of the activations that a product or convolution applies to its own result.
#pragma once

#include <cmath>

#include "model/epilogue.h"

namespace floe::kernels {

template <typename T>
T GeluPlain(T x) {
  const auto v = static_cast<double>(x);
  return static_cast<T>(0.5 * v * std::erfc(-v * 0.70710678118654752));
}
template <typename T>
T GeluTanhPlain(T x) {
  const auto v = static_cast<double>(x);
  return static_cast<T>(v / (1 + std::exp(-1.5957691216057308 * (v + 0.044715 * v * v * v))));
}

template <typename T>
T SeluPlain(T x) {
  const auto v = static_cast<double>(x);
  return static_cast<T>(v < 0 ? 1.7580993408473767 * std::expm1(v) : 1.0507009873554805 * v);
}
template <typename T>
T SoftplusPlain(T x) {
  const auto v = static_cast<double>(x);
  return static_cast<T>((v > 0 ? v : 0) + std::log1p(std::exp(-std::abs(v))));
}
template <typename T>
T MishPlain(T x) {
  const auto v = static_cast<double>(x);
  return static_cast<T>(v * std::tanh(SoftplusPlain(v)));
}

// For the reference kernels and tests.
template <typename T>
T ActivatePlain(const Epilogue& epilogue, T x) {
  switch (epilogue.activation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return x < T(0) ? T(0) : x;
    case Activation::kRelu6:
      return x < T(0) ? T(0) : x > T(6) ? T(6) : x;
    case Activation::kSigmoid:
      return static_cast<T>(1 / (1 + std::exp(-static_cast<double>(x))));
    case Activation::kTanh:
      return static_cast<T>(std::tanh(static_cast<double>(x)));
    case Activation::kElu:
      return x < T(0) ? static_cast<T>(std::expm1(static_cast<double>(x))) : x;
    case Activation::kSelu:
      return SeluPlain(x);
    case Activation::kSoftplus:
      return SoftplusPlain(x);
    case Activation::kSoftsign:
      return static_cast<T>(x / (1 + std::abs(static_cast<double>(x))));
    case Activation::kExp:
      return static_cast<T>(std::exp(static_cast<double>(x)));
    case Activation::kLeakyRelu:
      return x < T(0) ? static_cast<T>(x * static_cast<double>(epilogue.alpha)) : x;
    case Activation::kSwish:
      return static_cast<T>(x / (1 + std::exp(-static_cast<double>(x))));
    case Activation::kGelu:
      return GeluPlain(x);
    case Activation::kGeluTanh:
      return GeluTanhPlain(x);
    case Activation::kMish:
      return MishPlain(x);
  }
  return x;
}

}  // namespace floe::kernels
