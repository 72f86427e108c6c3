// Activations that a multiplication or convolution applies to its own result.
#pragma once

#include <cmath>
#include <string>

#include "absl/status/statusor.h"
#include "model/attrs.h"

namespace floe::kernels {

enum class Activation : uint8_t {
  kNone,
  kRelu,
  kRelu6,
  kSigmoid,
  kTanh,
  kElu,
  kLeakyRelu,
  kSwish,
  kGelu,
  kGeluTanh
};

// By the op's name ("Swish": x * Sigmoid(x)); "" is kNone. INVALID_ARGUMENT names what is
// known.
absl::StatusOr<Activation> ActivationFromName(const std::string& name);
const char* ActivationName(Activation activation);

// What follows the sum of one output element.
struct Epilogue {
  Activation activation = Activation::kNone;
  float alpha = 0.2f;  // LeakyRelu's slope
  bool bias = false;   // the node's last input is the bias
  // Input 2 is added before the activation. It has the shape of the output.
  bool residual = false;

  // From attributes fused_activation, fused_alpha, fused_bias and fused_residual.
  static absl::StatusOr<Epilogue> FromAttrs(const Attrs& attrs);
};

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

// The plain form, for the reference kernels and tests.
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
    case Activation::kLeakyRelu:
      return x < T(0) ? static_cast<T>(x * static_cast<double>(epilogue.alpha)) : x;
    case Activation::kSwish:
      return static_cast<T>(x / (1 + std::exp(-static_cast<double>(x))));
    case Activation::kGelu:
      return GeluPlain(x);
    case Activation::kGeluTanh:
      return GeluTanhPlain(x);
  }
  return x;
}

}  // namespace floe::kernels
