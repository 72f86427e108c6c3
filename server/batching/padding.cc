#include "server/batching/padding.h"

#include <cmath>
#include <complex>
#include <cstring>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "model/half.h"

namespace floe::server {
namespace {

// Doubles beyond T's range have no value there, and converting them is undefined.
template <typename T>
bool MakeInteger(DType dtype, double value, Tensor* out) {
  const double least = std::is_signed_v<T> ? -std::ldexp(1.0, 8 * sizeof(T) - 1) : 0;
  const double past = std::ldexp(1.0, 8 * sizeof(T) - (std::is_signed_v<T> ? 1 : 0));
  if (!(value >= least && value < past) || value != std::floor(value)) return false;
  *out = Tensor::Scalar<T>(dtype, static_cast<T>(value));
  return true;
}

template <typename T, typename From>
bool Make(DType dtype, From value, Tensor* out) {
  *out = Tensor::Scalar<T>(dtype, static_cast<T>(value));
  return true;
}

bool MakeValue(DType dtype, double value, Tensor* out) {
  switch (dtype) {
    case DType::kFloat32:
      return Make<float>(dtype, value, out);
    case DType::kFloat64:
      return Make<double>(dtype, value, out);
    case DType::kComplex64:
      return Make<std::complex<float>>(dtype, static_cast<float>(value), out);
    case DType::kComplex128:
      return Make<std::complex<double>>(dtype, value, out);
    case DType::kFloat16:
      return Make<uint16_t>(dtype, FloatToHalfBits(static_cast<float>(value)), out);
    case DType::kBFloat16:
      return Make<uint16_t>(dtype, FloatToBFloat16Bits(static_cast<float>(value)), out);
    case DType::kBool:
      return (value == 0 || value == 1) && Make<bool>(dtype, value != 0, out);
    case DType::kInt8:
      return MakeInteger<int8_t>(dtype, value, out);
    case DType::kInt16:
      return MakeInteger<int16_t>(dtype, value, out);
    case DType::kInt32:
      return MakeInteger<int32_t>(dtype, value, out);
    case DType::kInt64:
      return MakeInteger<int64_t>(dtype, value, out);
    case DType::kUInt8:
      return MakeInteger<uint8_t>(dtype, value, out);
    case DType::kUInt16:
      return MakeInteger<uint16_t>(dtype, value, out);
    case DType::kUInt32:
      return MakeInteger<uint32_t>(dtype, value, out);
    case DType::kUInt64:
      return MakeInteger<uint64_t>(dtype, value, out);
    default:
      return false;
  }
}

void Fill(std::byte* to, size_t elements, const Tensor& pad) {
  const size_t size = DTypeSize(pad.dtype());
  for (size_t i = 0; i < elements; ++i) std::memcpy(to + i * size, pad.data(), size);
}

// The part of both tensors from `axis` on; strides are in elements.
void CopyAxis(const TensorView& from, const TensorView& to, int axis, const std::byte* in,
              std::byte* out, const Tensor& pad) {
  const size_t size = DTypeSize(to.dtype);
  if (axis == to.shape.rank()) {
    std::memcpy(out, in, size);
    return;
  }
  size_t in_block = size, out_elements = 1;
  bool equal_inside = true;
  for (int i = axis + 1; i < to.shape.rank(); ++i) {
    in_block *= static_cast<size_t>(from.shape.dim(i));
    out_elements *= static_cast<size_t>(to.shape.dim(i));
    equal_inside = equal_inside && from.shape.dim(i) == to.shape.dim(i);
  }
  const size_t out_block = out_elements * size;
  const auto have = static_cast<size_t>(from.shape.dim(axis));
  const auto want = static_cast<size_t>(to.shape.dim(axis));
  if (equal_inside) {
    if (have * in_block > 0) std::memcpy(out, in, have * in_block);
  } else {
    for (size_t i = 0; i < have; ++i)
      CopyAxis(from, to, axis + 1, in + i * in_block, out + i * out_block, pad);
  }
  Fill(out + have * out_block, (want - have) * out_elements, pad);
}

}  // namespace

absl::StatusOr<Tensor> PadValue(DType dtype, double value) {
  Tensor pad;
  if (MakeValue(dtype, value, &pad)) return pad;
  return absl::InvalidArgumentError(
      absl::StrCat("padding value ", value, " is no ", DTypeName(dtype)));
}

void RaiseInnerDims(const Shape& other, Shape* shape) {
  for (int i = 1; i < shape->rank(); ++i)
    if (other.dim(i) > shape->dim(i)) shape->set_dim(i, other.dim(i));
}

void CopyPadded(const TensorView& from, const TensorView& to, const Tensor& pad) {
  CopyAxis(from, to, 0, static_cast<const std::byte*>(from.data), static_cast<std::byte*>(to.data),
           pad);
}

}  // namespace floe::server
