// Reads a TensorProto: its type and shape first, its values on the thread that runs it.
#include "server/request/parsed_tensor.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/status.h"
#include "base/wire_reader.h"

namespace floe::server {
namespace {

constexpr int64_t kMaxTensorBytes = int64_t{1} << 40;  // keeps sizes far from overflow

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

// How many varints there are; -1: the last one is cut off, or one is too long.
int64_t CountVarints(std::string_view packed) {
  int64_t count = 0;
  int length = 0;
  for (const char c : packed) {
    if (c >= 0) {
      ++count;
      length = 0;
    } else if (++length == 10) {
      return -1;
    }
  }
  return length == 0 ? count : -1;
}

// How many values a piece of a list holds; -1: it is no such list.
int64_t CountValues(ListKind kind, std::string_view piece) {
  const size_t size = kind == ListKind::kFixed32 ? 4 : 8;
  switch (kind) {
    case ListKind::kFixed32:
    case ListKind::kFixed64:
      return piece.size() % size == 0 ? static_cast<int64_t>(piece.size() / size) : -1;
    case ListKind::kVarint:
      return CountVarints(piece);
    default:
      return 1;
  }
}

// Whether a field of this wire type belongs to the list: packed values, or a single one.
bool IsPieceOf(ListKind kind, WireType type) {
  if (type == WireType::kBytes) return true;
  return (kind == ListKind::kVarint && type == WireType::kVarint) ||
         (kind == ListKind::kFixed32 && type == WireType::kFixed32) ||
         (kind == ListKind::kFixed64 && type == WireType::kFixed64);
}

bool AddPiece(TensorField list, std::string_view piece, ParsedTensor* tensor) {
  const ListKind kind = KindOf(list);
  const int64_t values = CountValues(kind, piece);
  if (values < 0) return false;
  if (values == 0) return true;
  const bool first = tensor->values == 0;
  tensor->several_lists |= !first && tensor->list != list;
  tensor->list = first ? list : std::min(tensor->list, list);
  tensor->values += values;
  tensor->value_bytes += static_cast<int64_t>(piece.size());
  tensor->packed = first && kind != ListKind::kStrings ? piece : std::string_view();
  tensor->last = piece;
  return true;
}

// The dtypes of float8_val, which is none, cannot be sent.
bool IsList(uint32_t field) {
  return field >= static_cast<uint32_t>(TensorField::kFloatVal) &&
         field < static_cast<uint32_t>(TensorField::kFloat8Val);
}

// Calls visit(piece) for the list's values: packed ones, a single one, or a string.
template <typename Visit>
void ForEachPiece(const ParsedTensor& tensor, Visit visit) {
  if (!tensor.packed.empty()) return visit(tensor.packed);
  for (const std::string_view message : tensor.messages) {
    WireReader reader(message);
    uint32_t field;
    WireType type;
    std::string_view piece;
    while (!reader.Done() && reader.ReadTag(&field, &type) && reader.ReadValue(type, &piece))
      if (field == static_cast<uint32_t>(tensor.list) && IsPieceOf(KindOf(tensor.list), type))
        visit(piece);
  }
}

absl::Status BadInput(std::string_view key, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("input ", Quoted(key), ": ", what));
}

// The numbers of a list of varints, as protobuf's own classes would give them; the last one is
// repeated.
template <typename T>
void* DecodeVarints(const ParsedTensor& tensor, int64_t elements, InputStorage* storage) {
  auto* const out = static_cast<T*>(storage->Allocate(elements * static_cast<int64_t>(sizeof(T))));
  T* at = out;
  ForEachPiece(tensor, [&at](std::string_view piece) {
    WireReader reader(piece);
    uint64_t value;
    while (!reader.Done() && reader.ReadVarint(&value)) *at++ = static_cast<T>(value);
  });
  std::fill(at, out + elements, at[-1]);
  return out;
}

void* DecodeVarints(const ParsedTensor& tensor, DType dtype, int64_t elements,
                    InputStorage* storage) {
  if (dtype == DType::kBool) return DecodeVarints<bool>(tensor, elements, storage);
  switch (DTypeSize(dtype)) {
    case 1:
      return DecodeVarints<uint8_t>(tensor, elements, storage);
    case 2:
      return DecodeVarints<uint16_t>(tensor, elements, storage);
    case 4:
      return DecodeVarints<uint32_t>(tensor, elements, storage);
    default:
      return DecodeVarints<uint64_t>(tensor, elements, storage);
  }
}

// Values whose bytes on the wire are those of the tensor.
void* DecodeFixed(const ParsedTensor& tensor, size_t size, int64_t elements,
                  InputStorage* storage) {
  auto* const out = static_cast<char*>(storage->Allocate(elements * static_cast<int64_t>(size)));
  char* at = out;
  ForEachPiece(tensor, [&at](std::string_view piece) {
    std::memcpy(at, piece.data(), piece.size());
    at += piece.size();
  });
  const char* const last = at - size;
  for (const char* const end = out + static_cast<size_t>(elements) * size; at != end; at += size)
    std::memcpy(at, last, size);
  return out;
}

// What `elements` strings take, the last one sent again and again. Saturates.
int64_t StringBytes(const ParsedTensor& tensor, int64_t elements) {
  constexpr int64_t kMost = INT64_MAX / 4;
  const int64_t bytes = elements * static_cast<int64_t>(sizeof(std::string)) + tensor.value_bytes;
  const int64_t rest = elements - tensor.values, last = static_cast<int64_t>(tensor.last.size());
  if (tensor.list == TensorField::kNone || last == 0) return bytes;
  return rest > (kMost - bytes) / last ? kMost : bytes + rest * last;
}

void* DecodeStrings(const ParsedTensor& tensor, int64_t elements, InputStorage* storage) {
  std::string* const out = storage->AllocateStrings(elements);
  if (tensor.list == TensorField::kNone) return out;
  std::string* at = out;
  ForEachPiece(tensor, [&at](std::string_view piece) { *at++ = std::string(piece); });
  std::fill(at, out + elements, std::string(tensor.last));
  return out;
}

absl::Status CheckContent(std::string_view key, DType dtype, const ParsedTensor& tensor,
                          int64_t elements) {
  if (dtype == DType::kString)
    return BadInput(key, "strings are read from string_val, not from tensor_content");
  if (tensor.list != TensorField::kNone)
    return BadInput(key,
                    absl::StrCat("values in both tensor_content and ", FieldName(tensor.list)));
  const auto expected = static_cast<size_t>(elements) * DTypeSize(dtype);
  if (tensor.content.size() != expected)
    return BadInput(
        key, absl::StrCat("shape ", tensor.shape.ToString(), " of ", DTypeName(dtype), " needs ",
                          expected, " bytes of tensor_content, got ", tensor.content.size()));
  if (dtype != DType::kBool) return absl::OkStatus();
  for (const char byte : tensor.content) {
    if ((byte & ~1) == 0) continue;
    const int number = static_cast<uint8_t>(byte);
    return BadInput(key,
                    absl::StrCat("tensor_content of bool holds byte ", number, ", not 0 or 1"));
  }
  return absl::OkStatus();
}

// Values in the list of the view's dtype, or none at all.
absl::Status CheckList(std::string_view key, const ParsedTensor& tensor, int64_t elements,
                       CheckedTensor* out) {
  const DType dtype = out->view.dtype;
  const TensorField list = ListOf(dtype);
  if (tensor.several_lists) return BadInput(key, "values in more than one list");
  if (tensor.list != TensorField::kNone && tensor.list != list)
    return BadInput(key,
                    absl::StrCat("values in ", FieldName(tensor.list), ", but ", DTypeName(dtype),
                                 " is read from ", FieldName(list), " or tensor_content"));
  const auto size = static_cast<int64_t>(DTypeSize(dtype));
  const bool fixed = KindOf(list) == ListKind::kFixed32 || KindOf(list) == ListKind::kFixed64;
  if (fixed && tensor.value_bytes % size != 0)
    return BadInput(key, absl::StrCat(FieldName(list), " ends in the middle of a value"));
  const int64_t count = fixed ? tensor.value_bytes / size : tensor.values;
  if (count > elements)
    return BadInput(key,
                    absl::StrCat(count, " values in ", FieldName(list), " for shape ",
                                 tensor.shape.ToString(), ", which has ", elements, " elements"));
  if (fixed && count == elements && !tensor.packed.empty()) {
    out->view.data = const_cast<char*>(tensor.packed.data());
    return absl::OkStatus();
  }
  out->repeats = count < elements;
  out->bytes = dtype == DType::kString ? StringBytes(tensor, elements) : elements * size;
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
  tensor->messages.push_back(message);
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
      if (!reader.ReadValue(type, &part) || !AddPiece(known, part, tensor)) return false;
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
  const size_t element_size = dtype == DType::kString ? sizeof(std::string) : DTypeSize(dtype);
  const absl::StatusOr<int64_t> elements =
      CheckedElements(tensor.shape.dims(), element_size, kMaxTensorBytes);
  if (!elements.ok()) return BadInput(key, std::string(elements.status().message()));
  CheckedTensor checked{{dtype, tensor.shape, nullptr}};
  if (tensor.content.empty()) {
    FLOE_RETURN_IF_ERROR(CheckList(key, tensor, *elements, &checked));
  } else {
    FLOE_RETURN_IF_ERROR(CheckContent(key, dtype, tensor, *elements));
    checked.view.data = const_cast<char*>(tensor.content.data());
  }
  return checked;
}

absl::Status DecodeTensor(const ParsedTensor& tensor, InputStorage* storage, TensorView* view) {
  if (view->data != nullptr) return absl::OkStatus();
  const DType dtype = view->dtype;
  const int64_t elements = view->elements();
  const int64_t bytes = dtype == DType::kString ? StringBytes(tensor, elements)
                                                : elements * static_cast<int64_t>(DTypeSize(dtype));
  FLOE_RETURN_IF_ERROR(storage->Pay(bytes));
  if (dtype == DType::kString) {
    view->data = DecodeStrings(tensor, elements, storage);
  } else if (tensor.list == TensorField::kNone) {
    view->data = storage->Allocate(bytes);
    std::memset(view->data, 0, static_cast<size_t>(bytes));
  } else if (KindOf(tensor.list) == ListKind::kVarint) {
    view->data = DecodeVarints(tensor, dtype, elements, storage);
  } else {
    view->data = DecodeFixed(tensor, DTypeSize(dtype), elements, storage);
  }
  return absl::OkStatus();
}

}  // namespace floe::server
