// C++ types of the element types, lists of them, and registration of one kernel template for a
// list.
#pragma once

#include <complex>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "kernels/cpu/element_type.h"
#include "kernels/kernel.h"
#include "model/half.h"

namespace floe::kernels {

template <class... Ts>
struct TypeList {};

using Floats = TypeList<float, double, Half, BFloat16>;
using Integers = TypeList<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>;
using Reals = TypeList<float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t,
                       uint16_t, uint32_t, uint64_t>;
using Complexes = TypeList<std::complex<float>, std::complex<double>>;
using Numbers = TypeList<float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t,
                         uint16_t, uint32_t, uint64_t, std::complex<float>, std::complex<double>>;
using FloatsAndComplexes =
    TypeList<float, double, Half, BFloat16, std::complex<float>, std::complex<double>>;
using Booleans = TypeList<bool>;
using Comparable = TypeList<float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t,
                            uint8_t, uint16_t, uint32_t, uint64_t, bool, std::string>;

template <class T>
inline constexpr DType kDTypeOf = DType::kInvalid;
template <>
inline constexpr DType kDTypeOf<float> = DType::kFloat32;
template <>
inline constexpr DType kDTypeOf<double> = DType::kFloat64;
template <>
inline constexpr DType kDTypeOf<Half> = DType::kFloat16;
template <>
inline constexpr DType kDTypeOf<BFloat16> = DType::kBFloat16;
template <>
inline constexpr DType kDTypeOf<int8_t> = DType::kInt8;
template <>
inline constexpr DType kDTypeOf<int16_t> = DType::kInt16;
template <>
inline constexpr DType kDTypeOf<int32_t> = DType::kInt32;
template <>
inline constexpr DType kDTypeOf<int64_t> = DType::kInt64;
template <>
inline constexpr DType kDTypeOf<uint8_t> = DType::kUInt8;
template <>
inline constexpr DType kDTypeOf<uint16_t> = DType::kUInt16;
template <>
inline constexpr DType kDTypeOf<uint32_t> = DType::kUInt32;
template <>
inline constexpr DType kDTypeOf<uint64_t> = DType::kUInt64;
template <>
inline constexpr DType kDTypeOf<bool> = DType::kBool;
template <>
inline constexpr DType kDTypeOf<std::complex<float>> = DType::kComplex64;
template <>
inline constexpr DType kDTypeOf<std::complex<double>> = DType::kComplex128;
template <>
inline constexpr DType kDTypeOf<std::string> = DType::kString;

template <class T>
inline constexpr bool kIsHalf = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
template <class T>
inline constexpr bool kIsComplex =
    std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;
// What arithmetic on T is done in.
template <class T>
using Compute = std::conditional_t<kIsHalf<T>, float, T>;
template <class T>
inline constexpr bool kIsFloating = std::is_floating_point_v<Compute<T>>;

// The least finite number: what a maximum begins with, so that as TensorFlow's that of -inf alone
// is this.
template <class T>
Compute<T> Lowest() {
  if constexpr (std::is_same_v<T, Half>) return -65504;
  if constexpr (std::is_same_v<T, BFloat16>) return -0x1.fep127f;
  return std::numeric_limits<Compute<T>>::lowest();
}

// Integer arithmetic modulo 2^width, as TensorFlow's; plain arithmetic for other types.
template <class T>
T WrapAdd(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else
    return a + b;
}
template <class T>
T WrapSub(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  else
    return a - b;
}
template <class T>
T WrapMul(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else
    return a * b;
}

// Calls f(T{}) for the type of `dtype` out of the list; false when it is not among them.
template <class F, class... Ts>
bool ForDType(DType dtype, TypeList<Ts...>, F&& f) {
  return ((dtype == kDTypeOf<Ts> ? (f(Ts{}), true) : false) || ...);
}

// Registers make(TypeList<T>) for each T of the list.
template <class... Ts, class Make>
bool RegisterForTypes(const char* op, DeviceKind device, TypeList<Ts...>, const Make& make) {
  (KernelRegistrar(op, device, {kDTypeOf<Ts>}, make(TypeList<Ts>{})), ...);
  return true;
}

}  // namespace floe::kernels

// As FLOE_REGISTER_KERNEL, for each T of a TypeList (the last argument) the factory that `make`, an
// expression with T, is.
#define FLOE_REGISTER_KERNELS(op, device, make, ...)                                              \
  static const bool FLOE_CONCAT_(floe_kernels_, __COUNTER__) = ::floe::kernels::RegisterForTypes( \
      #op, ::floe::DeviceKind::device, __VA_ARGS__{},                                             \
      []<class T>(::floe::kernels::TypeList<T>) -> ::floe::KernelFactory { return make; })
