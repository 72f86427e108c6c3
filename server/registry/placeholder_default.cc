#include "server/registry/placeholder_default.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace floe::server {
namespace {

std::string Text(const PlaceholderDefault& value) {
  if (const auto* b = std::get_if<bool>(&value.value)) return *b ? "true" : "false";
  if (const auto* i = std::get_if<int64_t>(&value.value)) return absl::StrCat(*i);
  if (const auto* d = std::get_if<double>(&value.value)) return absl::StrCat(*d);
  return absl::StrCat("'", std::get<std::string>(value.value), "'");
}

// The dtype a bare scalar stands for.
DType Natural(const PlaceholderDefault& value) {
  if (std::holds_alternative<bool>(value.value)) return DType::kBool;
  if (std::holds_alternative<double>(value.value)) return DType::kFloat32;
  if (std::holds_alternative<std::string>(value.value)) return DType::kString;
  const int64_t integer = std::get<int64_t>(value.value);
  const bool fits = integer >= std::numeric_limits<int32_t>::min() &&
                    integer <= std::numeric_limits<int32_t>::max();
  return fits ? DType::kInt32 : DType::kInt64;
}

template <typename T>
bool MakeInteger(DType dtype, const PlaceholderDefault& value, Tensor* out) {
  const auto* integer = std::get_if<int64_t>(&value.value);
  if (integer == nullptr || static_cast<int64_t>(static_cast<T>(*integer)) != *integer)
    return false;
  if (std::is_unsigned_v<T> && *integer < 0) return false;
  *out = Tensor::Scalar<T>(dtype, static_cast<T>(*integer));
  return true;
}

template <typename T>
bool MakeReal(DType dtype, const PlaceholderDefault& value, Tensor* out) {
  const auto* integer = std::get_if<int64_t>(&value.value);
  const auto* real = std::get_if<double>(&value.value);
  if (integer == nullptr && real == nullptr) return false;
  *out =
      Tensor::Scalar<T>(dtype, real != nullptr ? static_cast<T>(*real) : static_cast<T>(*integer));
  return true;
}

bool Make(DType dtype, const PlaceholderDefault& value, Tensor* out) {
  switch (dtype) {
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
    case DType::kFloat32:
      return MakeReal<float>(dtype, value, out);
    case DType::kFloat64:
      return MakeReal<double>(dtype, value, out);
    case DType::kBool:
      if (!std::holds_alternative<bool>(value.value)) return false;
      *out = Tensor::Scalar<bool>(dtype, std::get<bool>(value.value));
      return true;
    case DType::kString:
      if (!std::holds_alternative<std::string>(value.value)) return false;
      *out = Tensor::Allocate(dtype, Shape());
      *static_cast<std::string*>(out->mutable_data()) = std::get<std::string>(value.value);
      return true;
    default:
      return false;
  }
}

}  // namespace

absl::StatusOr<Tensor> DefaultTensor(const std::string& name, const PlaceholderDefault& value) {
  DType dtype = Natural(value);
  if (!value.dtype.empty()) {
    const auto named = DTypeFromName(value.dtype);
    if (!named.ok()) return Annotate(named.status(), absl::StrCat("placeholder_defaults.", name));
    dtype = *named;
  }
  Tensor tensor;
  if (!Make(dtype, value, &tensor))
    return absl::InvalidArgumentError(absl::StrCat("placeholder_defaults.", name, ": ", Text(value),
                                                   " is no value of dtype ", DTypeName(dtype)));
  return tensor;
}

}  // namespace floe::server
