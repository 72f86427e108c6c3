// Parses JSON into tensors of a dtype, and prints tensors.
#include "cli/tensor_json.h"

#include <charconv>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <limits>
#include <type_traits>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/half.h"

namespace floe::cli {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

template <typename T>
struct Tag {
  using Type = T;
};

// Calls visit(Tag<T>) with the C++ type of the dtype; false for types without values.
template <typename Visit>
bool WithType(DType dtype, const Visit& visit) {
  switch (PlainDType(dtype)) {
    case DType::kFloat32:
      return visit(Tag<float>()), true;
    case DType::kFloat64:
      return visit(Tag<double>()), true;
    case DType::kFloat16:
      return visit(Tag<Half>()), true;
    case DType::kBFloat16:
      return visit(Tag<BFloat16>()), true;
    case DType::kInt8:
      return visit(Tag<int8_t>()), true;
    case DType::kInt16:
      return visit(Tag<int16_t>()), true;
    case DType::kInt32:
      return visit(Tag<int32_t>()), true;
    case DType::kInt64:
      return visit(Tag<int64_t>()), true;
    case DType::kUInt8:
      return visit(Tag<uint8_t>()), true;
    case DType::kUInt16:
      return visit(Tag<uint16_t>()), true;
    case DType::kUInt32:
      return visit(Tag<uint32_t>()), true;
    case DType::kUInt64:
      return visit(Tag<uint64_t>()), true;
    case DType::kBool:
      return visit(Tag<bool>()), true;
    case DType::kString:
      return visit(Tag<std::string>()), true;
    case DType::kComplex64:
      return visit(Tag<std::complex<float>>()), true;
    case DType::kComplex128:
      return visit(Tag<std::complex<double>>()), true;
    default:
      return false;
  }
}

template <typename T>
constexpr bool kIsFloat = std::is_same_v<T, float> || std::is_same_v<T, double> ||
                          std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

bool FloatOf(const Json& json, double* value) {
  if (json.is_number()) {
    *value = json.get<double>();
    return true;
  }
  if (!json.is_string()) return false;
  const std::string& text = json.get_ref<const std::string&>();
  if (text == "NaN")
    *value = std::numeric_limits<double>::quiet_NaN();
  else if (text == "Infinity")
    *value = std::numeric_limits<double>::infinity();
  else if (text == "-Infinity")
    *value = -std::numeric_limits<double>::infinity();
  else
    return false;
  return true;
}

bool StringOf(const Json& json, std::string* value) {
  if (json.is_string()) {
    *value = json.get<std::string>();
    return true;
  }
  if (!json.is_object() || json.size() != 1 || !json.contains("b64") || !json["b64"].is_string()) {
    return false;
  }
  return absl::Base64Unescape(json["b64"].get<std::string>(), value);
}

// False when the JSON value is not one of T's.
template <typename T>
bool ValueOf(const Json& json, T* value) {
  if constexpr (std::is_same_v<T, bool>) {
    if (!json.is_boolean()) return false;
    *value = json.get<bool>();
    return true;
  } else if constexpr (std::is_same_v<T, std::string>) {
    return StringOf(json, value);
  } else if constexpr (kIsFloat<T>) {
    double wide = 0;
    if (!FloatOf(json, &wide)) return false;
    *value = static_cast<T>(
        static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(wide));
    return true;
  } else if constexpr (std::is_integral_v<T>) {
    if (json.is_number_unsigned()) {
      const auto wide = json.get<uint64_t>();
      *value = static_cast<T>(wide);
      return wide <= static_cast<uint64_t>(std::numeric_limits<T>::max());
    }
    if (!json.is_number_integer()) return false;
    const auto wide = json.get<int64_t>();  // negative: the others are unsigned to the parser
    *value = static_cast<T>(wide);
    return wide >= static_cast<int64_t>(std::numeric_limits<T>::min());
  } else {
    return false;  // complex numbers come from .npy files
  }
}

// The sizes of the first element of each level; Fill checks that all others agree.
Shape ShapeOf(const Json& json) {
  Shape shape;
  for (const Json* level = &json; level->is_array(); level = &level->front()) {
    shape.push_back(static_cast<int64_t>(level->size()));
    if (level->empty()) break;
  }
  return shape;
}

template <typename T>
absl::Status Fill(const Json& json, const Shape& shape, int axis, DType dtype,
                  const std::string& at, T** out) {
  if (axis == shape.rank()) {
    if (json.is_array())
      return absl::InvalidArgumentError(absl::StrCat("element", at, " is a list, others are not"));
    if (ValueOf<T>(json, *out)) {
      ++*out;
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrCat("element", at, ": ", json.dump(), " is not of type ", DTypeName(dtype)));
  }
  if (!json.is_array() || static_cast<int64_t>(json.size()) != shape.dim(axis)) {
    return absl::InvalidArgumentError(
        absl::StrCat("element", at, ": a list of ", shape.dim(axis),
                     " expected as in its neighbours (lists must not be ragged)"));
  }
  for (size_t i = 0; i < json.size(); ++i) {
    FLOE_RETURN_IF_ERROR(
        Fill<T>(json[i], shape, axis + 1, dtype, absl::StrCat(at, "[", i, "]"), out));
  }
  return absl::OkStatus();
}

// The shortest decimal that reads back as this value.
template <typename T>
std::string Shortest(T value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  char text[40];
  return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
}

template <typename T>
OrderedJson FloatJson(T value) {
  const std::string text = Shortest(value);
  if (!std::isfinite(value)) return text;
  // Through the decimal, so that a float32 0.1 is not printed with a double's digits.
  return std::strtod(text.c_str(), nullptr);
}

OrderedJson StringJson(const std::string& value) {
  // nlohmann refuses invalid UTF-8 when it dumps; asking it is the check.
  const Json probe(value);
  if (probe.dump(-1, ' ', false, Json::error_handler_t::ignore).size() ==
          probe.dump(-1, ' ', false, Json::error_handler_t::replace).size() &&
      value.find('\0') == std::string::npos) {
    return value;
  }
  return {{"b64", absl::Base64Escape(value)}};
}

template <typename T>
OrderedJson ElementJson(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return StringJson(value);
  } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return FloatJson(static_cast<float>(value));
  } else if constexpr (kIsFloat<T>) {
    return FloatJson(value);
  } else if constexpr (std::is_integral_v<T>) {
    return value;
  } else {
    return OrderedJson::array({FloatJson(value.real()), FloatJson(value.imag())});
  }
}

template <typename T>
OrderedJson Nest(const Shape& shape, int axis, const T** in) {
  if (axis == shape.rank()) return ElementJson<T>(*(*in)++);
  OrderedJson list = OrderedJson::array();
  for (int64_t i = 0; i < shape.dim(axis); ++i) list.push_back(Nest<T>(shape, axis + 1, in));
  return list;
}

}  // namespace

absl::StatusOr<Tensor> TensorFromJson(const nlohmann::json& json, DType dtype) {
  const Shape shape = ShapeOf(json);
  // The elements may be fewer than the shape's product (a ragged list); the text's size bounds
  // both.
  const size_t element = dtype == DType::kString ? sizeof(std::string) : DTypeSize(dtype);
  FLOE_RETURN_IF_ERROR(CheckedElements(shape.dims(), element, int64_t{1} << 32).status());
  Tensor tensor = Tensor::Allocate(dtype, shape);
  absl::Status status;
  const bool has_values = WithType(dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    T* out = static_cast<T*>(tensor.mutable_data());
    status = Fill<T>(json, shape, 0, dtype, "", &out);
  });
  if (!has_values)
    status = absl::InvalidArgumentError(
        absl::StrCat("a ", DTypeName(dtype), " cannot be written as JSON"));
  if (!status.ok()) return status;
  return tensor;
}

nlohmann::ordered_json TensorToJson(const TensorView& view) {
  OrderedJson json;
  WithType(view.dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    const T* in = view.as<T>();
    json = Nest<T>(view.shape, 0, &in);
  });
  return json;
}

std::string ElementText(const TensorView& view, int64_t index) {
  std::string text = "?";
  WithType(view.dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    const T& value = view.as<T>()[index];
    if constexpr (std::is_same_v<T, std::string>) {
      text = "'" + absl::CHexEscape(value) + "'";
    } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
      text = Shortest(static_cast<float>(value));
    } else if constexpr (kIsFloat<T>) {
      text = Shortest(value);
    } else if constexpr (std::is_same_v<T, bool>) {
      text = value ? "true" : "false";
    } else if constexpr (std::is_integral_v<T>) {
      text = std::to_string(value);
    } else {
      text = absl::StrCat(Shortest(value.real()), value.imag() < 0 ? "" : "+",
                          Shortest(value.imag()), "j");
    }
  });
  return text;
}

}  // namespace floe::cli
