// Reads a configured scalar as the dtype that is named, or the one it stands for.
#include "server/loading/placeholder_default.h"

#include <limits>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/number.h"

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

std::optional<Tensor> Make(DType dtype, const PlaceholderDefault& value) {
  if (const auto* integer = std::get_if<int64_t>(&value.value))
    return IntegerScalar(dtype, *integer);
  if (const auto* real = std::get_if<double>(&value.value)) return RealScalar(dtype, *real);
  if (const auto* truth = std::get_if<bool>(&value.value)) {
    if (dtype != DType::kBool) return std::nullopt;
    return Tensor::Scalar(dtype, *truth);
  }
  if (dtype != DType::kString) return std::nullopt;
  Tensor text = Tensor::Allocate(dtype, Shape());
  *static_cast<std::string*>(text.mutable_data()) = std::get<std::string>(value.value);
  return text;
}

}  // namespace

absl::StatusOr<Tensor> DefaultTensor(const std::string& name, const PlaceholderDefault& value) {
  DType dtype = Natural(value);
  if (!value.dtype.empty()) {
    const auto named = DTypeFromName(value.dtype);
    if (!named.ok()) return Annotate(named.status(), absl::StrCat("placeholder_defaults.", name));
    dtype = *named;
  }
  if (std::optional<Tensor> tensor = Make(dtype, value)) return *std::move(tensor);
  return absl::InvalidArgumentError(absl::StrCat("placeholder_defaults.", name, ": ", Text(value),
                                                 " is no value of dtype ", DTypeName(dtype)));
}

}  // namespace floe::server
