// Reads a TensorProto: its type and shape, and where its values lie.
#include "server/request/parsed_tensor.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/status.h"
#include "base/wire_reader.h"

namespace floe::server {
namespace {

// By field number.
constexpr struct {
  const char* name;
  ListKind kind;
} kFields[] = {{"no values", ListKind::kNone},           {"dtype", ListKind::kNone},
               {"tensor_shape", ListKind::kNone},        {"version_number", ListKind::kNone},
               {"tensor_content", ListKind::kNone},      {"float_val", ListKind::kFixed32},
               {"double_val", ListKind::kFixed64},       {"int_val", ListKind::kVarint},
               {"string_val", ListKind::kStrings},       {"scomplex_val", ListKind::kFixed32},
               {"int64_val", ListKind::kVarint},         {"bool_val", ListKind::kVarint},
               {"dcomplex_val", ListKind::kFixed64},     {"half_val", ListKind::kVarint},
               {"resource_handle_val", ListKind::kNone}, {"variant_val", ListKind::kNone},
               {"uint32_val", ListKind::kVarint},        {"uint64_val", ListKind::kVarint},
               {"float8_val", ListKind::kNone}};

const char* FieldName(TensorField field) { return kFields[static_cast<size_t>(field)].name; }

bool ParseShape(std::string_view message, ParsedTensor* tensor) {
  WireReader reader(message);
  while (!reader.Done()) {
    uint32_t field;
    WireType type;
    std::string_view dim;
    uint64_t value;
    int64_t size = 0;
    if (!reader.ReadTag(&field, &type)) return false;
    if (field == 2 && type == WireType::kBytes) {
      if (!reader.ReadBytes(&dim) || !ReadNumber(dim, 1, &size)) return false;
      tensor->shape.push_back(size);
    } else if (field == 3 && type == WireType::kVarint) {
      if (!reader.ReadVarint(&value)) return false;
      tensor->unknown_rank = value != 0;
    } else if (!reader.Skip()) {
      return false;
    }
  }
  return true;
}

// The dtypes of float8_val, which is none, cannot be sent.
bool IsList(uint32_t field) {
  return field >= static_cast<uint32_t>(TensorField::kFloatVal) &&
         field < static_cast<uint32_t>(TensorField::kFloat8Val);
}

TensorField SentIn(const ParsedTensor& tensor) {
  return static_cast<TensorField>(tensor.values.field);
}

absl::Status CheckContent(std::string_view key, DType dtype, const ParsedTensor& tensor,
                          int64_t elements) {
  if (dtype == DType::kString)
    return BadInput(key, "strings are read from string_val, not from tensor_content");
  if (tensor.values.values != 0)
    return BadInput(key,
                    absl::StrCat("values in both tensor_content and ", FieldName(SentIn(tensor))));
  const auto expected = static_cast<size_t>(elements) * DTypeSize(dtype);
  if (tensor.content.size() != expected)
    return BadInput(
        key, absl::StrCat("shape ", tensor.shape.ToString(), " of ", DTypeName(dtype), " needs ",
                          expected, " bytes of tensor_content, got ", tensor.content.size()));
  return CheckBools(key, "tensor_content", dtype, tensor.content);
}

// Values in the list of the view's dtype, or none at all.
absl::Status CheckList(std::string_view key, const ParsedTensor& tensor, int64_t elements,
                       CheckedTensor* out) {
  const DType dtype = out->view.dtype;
  const TensorField list = ListOf(dtype);
  if (tensor.values.several_fields) return BadInput(key, "values in more than one list");
  if (tensor.values.values != 0 && SentIn(tensor) != list)
    return BadInput(
        key, absl::StrCat("values in ", FieldName(SentIn(tensor)), ", but ", DTypeName(dtype),
                          " is read from ", FieldName(list), " or tensor_content"));
  const auto size = static_cast<int64_t>(DTypeSize(dtype));
  const bool fixed = KindOf(list) == ListKind::kFixed32 || KindOf(list) == ListKind::kFixed64;
  if (fixed && tensor.values.bytes % size != 0)
    return BadInput(key, absl::StrCat(FieldName(list), " ends in the middle of a value"));
  const int64_t count = fixed ? tensor.values.bytes / size : tensor.values.values;
  if (count > elements)
    return BadInput(key,
                    absl::StrCat(count, " values in ", FieldName(list), " for shape ",
                                 tensor.shape.ToString(), ", which has ", elements, " elements"));
  if (fixed && count == elements && !tensor.values.packed.empty()) {
    out->view.data = const_cast<char*>(tensor.values.packed.data());
    return absl::OkStatus();
  }
  out->repeats = count < elements;
  out->bytes = DecodedBytes(tensor.values, dtype, elements);
  return absl::OkStatus();
}

}  // namespace

TensorField ListOf(DType dtype) {
  switch (PlainDType(dtype)) {
    case DType::kFloat32:
      return TensorField::kFloatVal;
    case DType::kFloat64:
      return TensorField::kDoubleVal;
    case DType::kInt32:
    case DType::kInt16:
    case DType::kInt8:
    case DType::kUInt16:
    case DType::kUInt8:
      return TensorField::kIntVal;
    case DType::kString:
      return TensorField::kStringVal;
    case DType::kComplex64:
      return TensorField::kScomplexVal;
    case DType::kInt64:
      return TensorField::kInt64Val;
    case DType::kBool:
      return TensorField::kBoolVal;
    case DType::kComplex128:
      return TensorField::kDcomplexVal;
    case DType::kFloat16:
    case DType::kBFloat16:
      return TensorField::kHalfVal;
    case DType::kUInt32:
      return TensorField::kUint32Val;
    case DType::kUInt64:
      return TensorField::kUint64Val;
    default:
      return TensorField::kNone;
  }
}

ListKind KindOf(TensorField list) {
  const auto field = static_cast<size_t>(list);
  return field < std::size(kFields) ? kFields[field].kind : ListKind::kNone;
}

bool ParseTensor(std::string_view message, ParsedTensor* tensor) {
  tensor->values.messages.push_back(message);
  WireReader reader(message);
  while (!reader.Done()) {
    uint32_t field;
    WireType type;
    uint64_t number;
    std::string_view part;
    if (!reader.ReadTag(&field, &type)) return false;
    const auto known = static_cast<TensorField>(std::min<uint32_t>(field, UINT8_MAX));
    if (known == TensorField::kDtype && type == WireType::kVarint) {
      if (!reader.ReadVarint(&number)) return false;
      tensor->dtype = static_cast<int>(number);
    } else if (known == TensorField::kShape && type == WireType::kBytes) {
      if (!reader.ReadBytes(&part) || !ParseShape(part, tensor)) return false;
    } else if (known == TensorField::kContent && type == WireType::kBytes) {
      if (!reader.ReadBytes(&tensor->content)) return false;
    } else if (IsList(field) && IsPieceOf(KindOf(known), type)) {
      if (!reader.ReadValue(type, &part) || !AddPiece(field, KindOf(known), part, &tensor->values))
        return false;
    } else if (!reader.Skip()) {
      return false;
    }
  }
  return true;
}

absl::StatusOr<DType> DTypeOf(std::string_view key, const ParsedTensor& tensor) {
  if (tensor.dtype == 0) return BadInput(key, "no dtype was sent");
  absl::StatusOr<DType> dtype = DTypeFromNumber(tensor.dtype);
  if (!dtype.ok()) return BadInput(key, std::string(dtype.status().message()));
  if (ListOf(*dtype) == TensorField::kNone)
    return BadInput(key, absl::StrCat(DTypeName(*dtype), " cannot be sent in a request"));
  return dtype;
}

absl::StatusOr<CheckedTensor> CheckTensor(std::string_view key, const ParsedTensor& tensor) {
  FLOE_ASSIGN_OR_RETURN(const DType dtype, DTypeOf(key, tensor));
  if (tensor.unknown_rank) return BadInput(key, "its shape has an unknown rank; send every dim");
  FLOE_ASSIGN_OR_RETURN(const int64_t elements, ElementsOf(key, dtype, tensor.shape));
  CheckedTensor checked{{dtype, tensor.shape, nullptr}};
  if (tensor.content.empty()) {
    FLOE_RETURN_IF_ERROR(CheckList(key, tensor, elements, &checked));
  } else {
    FLOE_RETURN_IF_ERROR(CheckContent(key, dtype, tensor, elements));
    checked.view.data = const_cast<char*>(tensor.content.data());
  }
  return checked;
}

}  // namespace floe::server
