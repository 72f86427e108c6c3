#include "model/number.h"

#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>
#include <utility>

#include "model/half.h"

namespace floe {
namespace {

template <typename T>
bool Holds(int64_t value) {
  return std::in_range<T>(value);
}

// Doubles beyond T's range have no value there, and converting them is undefined. The bounds are
// powers of two, so they are doubles.
template <typename T>
bool Holds(double value) {
  const double past = std::ldexp(1.0, std::numeric_limits<T>::digits);
  const double least = std::is_signed_v<T> ? -past : 0;
  return value >= least && value < past && value == std::floor(value);
}

template <typename T, typename From>
std::optional<Tensor> Whole(DType dtype, From value) {
  if (!Holds<T>(value)) return std::nullopt;
  return Tensor::Scalar<T>(dtype, static_cast<T>(value));
}

template <typename From>
std::optional<Tensor> NumberScalar(DType dtype, From value) {
  const auto single = static_cast<float>(value);
  switch (dtype) {
    case DType::kFloat32:
      return Tensor::Scalar(dtype, single);
    case DType::kFloat64:
      return Tensor::Scalar(dtype, static_cast<double>(value));
    case DType::kComplex64:
      return Tensor::Scalar(dtype, std::complex<float>(single));
    case DType::kComplex128:
      return Tensor::Scalar(dtype, std::complex<double>(static_cast<double>(value)));
    case DType::kFloat16:
      return Tensor::Scalar(dtype, FloatToHalfBits(single));
    case DType::kBFloat16:
      return Tensor::Scalar(dtype, FloatToBFloat16Bits(single));
    case DType::kBool:
      if (value != 0 && value != 1) return std::nullopt;
      return Tensor::Scalar(dtype, value != 0);
    case DType::kInt8:
      return Whole<int8_t>(dtype, value);
    case DType::kInt16:
      return Whole<int16_t>(dtype, value);
    case DType::kInt32:
      return Whole<int32_t>(dtype, value);
    case DType::kInt64:
      return Whole<int64_t>(dtype, value);
    case DType::kUInt8:
      return Whole<uint8_t>(dtype, value);
    case DType::kUInt16:
      return Whole<uint16_t>(dtype, value);
    case DType::kUInt32:
      return Whole<uint32_t>(dtype, value);
    case DType::kUInt64:
      return Whole<uint64_t>(dtype, value);
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<Tensor> IntegerScalar(DType dtype, int64_t value) {
  return NumberScalar(dtype, value);
}

std::optional<Tensor> RealScalar(DType dtype, double value) { return NumberScalar(dtype, value); }

}  // namespace floe
