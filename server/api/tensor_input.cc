#include "server/api/tensor_input.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/wire_reader.h"
#include "server/api/names.h"
#include "server/api/unfolding.h"
#include "tensorflow/core/framework/tensor.pb.h"

namespace floe::server {
namespace {

constexpr int64_t kMaxTensorBytes = int64_t{1} << 40;  // keeps sizes far from overflow

absl::Status BadInput(std::string_view key, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("input ", Quoted(key), ": ", what));
}

// Fills `elements` values of type T with the `count` (> 0) that next() gives, the last one
// repeated.
template <typename T, typename Next>
void* Expand(int64_t elements, int64_t count, InputStorage* storage, Next next) {
  void* const memory = storage->Allocate(elements * static_cast<int64_t>(sizeof(T)));
  T* out = static_cast<T*>(memory);
  T last{};
  for (int64_t i = 0; i < count; ++i) out[i] = last = next();
  std::fill(out + count, out + elements, last);
  return memory;
}

// Values whose bytes on the wire are those of the tensor.
void* ExpandRaw(std::string_view raw, int64_t elements, size_t size, InputStorage* storage) {
  const int64_t count = static_cast<int64_t>(raw.size() / size);
  void* const memory = storage->Allocate(elements * static_cast<int64_t>(size));
  auto* out = static_cast<char*>(memory);
  std::memcpy(out, raw.data(), raw.size());
  const char* last = raw.data() + raw.size() - size;
  for (int64_t i = count; i < elements; ++i) std::memcpy(out + i * size, last, size);
  return memory;
}

// The numbers of a varint list as T, as protobuf's own classes would give them.
template <typename T, typename Next>
void* ExpandAs(DType dtype, int64_t elements, int64_t count, InputStorage* storage, Next next) {
  static_assert(sizeof(T) == 8);
  switch (PlainDType(dtype)) {
    case DType::kBool:
      return Expand<uint8_t>(elements, count, storage,
                             [&] { return static_cast<uint8_t>(next() != 0); });
    case DType::kInt8:
    case DType::kUInt8:
      return Expand<uint8_t>(elements, count, storage,
                             [&] { return static_cast<uint8_t>(next()); });
    case DType::kInt16:
    case DType::kUInt16:
    case DType::kFloat16:
    case DType::kBFloat16:
      return Expand<uint16_t>(elements, count, storage,
                              [&] { return static_cast<uint16_t>(next()); });
    case DType::kInt32:
    case DType::kUInt32:
      return Expand<uint32_t>(elements, count, storage,
                              [&] { return static_cast<uint32_t>(next()); });
    default:
      return Expand<uint64_t>(elements, count, storage,
                              [&] { return static_cast<uint64_t>(next()); });
  }
}

template <typename Repeated>
std::string_view RawBytes(const Repeated& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(*values.data())};
}

// What protobuf read, as raw bytes of a fixed-size list.
std::string_view RawOf(const tensorflow::TensorProto& proto, TensorField list) {
  switch (list) {
    case TensorField::kFloatVal:
      return RawBytes(proto.float_val());
    case TensorField::kDoubleVal:
      return RawBytes(proto.double_val());
    case TensorField::kScomplexVal:
      return RawBytes(proto.scomplex_val());
    default:
      return RawBytes(proto.dcomplex_val());
  }
}

template <typename Repeated>
void* ExpandRepeated(DType dtype, int64_t elements, const Repeated& values, InputStorage* storage) {
  auto at = values.begin();
  return ExpandAs<int64_t>(dtype, elements, values.size(), storage,
                           [&at] { return static_cast<int64_t>(*at++); });
}

void* ExpandParsed(DType dtype, int64_t elements, const SentTensor& sent, InputStorage* storage) {
  const tensorflow::TensorProto& proto = *sent.proto;
  switch (sent.list) {
    case TensorField::kIntVal:
      return ExpandRepeated(dtype, elements, proto.int_val(), storage);
    case TensorField::kInt64Val:
      return ExpandRepeated(dtype, elements, proto.int64_val(), storage);
    case TensorField::kBoolVal:
      return ExpandRepeated(dtype, elements, proto.bool_val(), storage);
    case TensorField::kHalfVal:
      return ExpandRepeated(dtype, elements, proto.half_val(), storage);
    case TensorField::kUint32Val:
      return ExpandRepeated(dtype, elements, proto.uint32_val(), storage);
    default:
      return ExpandRepeated(dtype, elements, proto.uint64_val(), storage);
  }
}

int64_t CountVarints(std::string_view packed) {
  return std::count_if(packed.begin(), packed.end(), [](char c) { return (c & 0x80) == 0; });
}

void* ExpandWalked(DType dtype, int64_t elements, const SentTensor& sent, InputStorage* storage) {
  WireReader reader(sent.packed);
  return ExpandAs<int64_t>(dtype, elements, CountVarints(sent.packed), storage, [&reader] {
    uint64_t value = 0;
    reader.ReadVarint(&value);  // the walk has checked the list
    return static_cast<int64_t>(value);
  });
}

// Of a list that protobuf read, of varints or strings.
int64_t CountParsed(const SentTensor& sent) {
  const tensorflow::TensorProto& proto = *sent.proto;
  switch (sent.list) {
    case TensorField::kIntVal:
      return proto.int_val_size();
    case TensorField::kInt64Val:
      return proto.int64_val_size();
    case TensorField::kBoolVal:
      return proto.bool_val_size();
    case TensorField::kHalfVal:
      return proto.half_val_size();
    case TensorField::kUint32Val:
      return proto.uint32_val_size();
    case TensorField::kUint64Val:
      return proto.uint64_val_size();
    default:
      return proto.string_val_size();
  }
}

absl::Status TooManyValues(std::string_view key, const SentTensor& sent, int64_t count,
                           int64_t elements) {
  return BadInput(key, absl::StrCat(count, " values in ", FieldName(sent.list), " for shape ",
                                    sent.shape.ToString(), ", which has ", elements, " elements"));
}

absl::Status CheckContent(std::string_view key, DType dtype, const SentTensor& sent,
                          int64_t elements) {
  if (dtype == DType::kString) {
    return BadInput(key, "strings are read from string_val, not from tensor_content");
  }
  if (sent.list != TensorField::kNone) {
    return BadInput(key, absl::StrCat("values in both tensor_content and ", FieldName(sent.list)));
  }
  const auto expected = static_cast<size_t>(elements) * DTypeSize(dtype);
  if (sent.content.size() != expected) {
    return BadInput(
        key, absl::StrCat("shape ", sent.shape.ToString(), " of ", DTypeName(dtype), " needs ",
                          expected, " bytes of tensor_content, got ", sent.content.size()));
  }
  if (dtype != DType::kBool) return absl::OkStatus();
  for (const char byte : sent.content) {
    if ((byte & ~1) == 0) continue;
    const int number = static_cast<uint8_t>(byte);
    return BadInput(key,
                    absl::StrCat("tensor_content of bool holds byte ", number, ", not 0 or 1"));
  }
  return absl::OkStatus();
}

// The bytes of the values in a list of numbers of fixed size.
std::string_view FixedValues(const SentTensor& sent) {
  return sent.proto != nullptr ? RawOf(*sent.proto, sent.list) : sent.packed;
}

// What `elements` strings take, the last one sent again and again. Saturates.
int64_t StringBytes(const SentTensor& sent, int64_t elements, int64_t count) {
  constexpr int64_t kMost = INT64_MAX / 4;
  int64_t bytes = elements * static_cast<int64_t>(sizeof(std::string)), last = 0;
  for (int64_t i = 0; i < count && bytes < kMost; ++i) {
    last = static_cast<int64_t>(sent.proto->string_val(static_cast<int>(i)).size());
    bytes += last;
  }
  if (count == 0 || last == 0) return bytes;
  const int64_t rest = elements - count;
  return rest > (kMost - bytes) / last ? kMost : bytes + rest * last;
}

// Values in the list of the view's dtype, or none at all.
absl::Status CheckList(std::string_view key, const SentTensor& sent, int64_t elements,
                       CheckedTensor* out) {
  const DType dtype = out->view.dtype;
  const TensorField list = ListOf(dtype);
  if (sent.several_lists) return BadInput(key, "values in more than one list");
  if (sent.list != TensorField::kNone && sent.list != list) {
    return BadInput(key,
                    absl::StrCat("values in ", FieldName(sent.list), ", but ", DTypeName(dtype),
                                 " is read from ", FieldName(list), " or tensor_content"));
  }
  const auto size = static_cast<int64_t>(DTypeSize(dtype));
  const bool fixed = KindOf(list) == ListKind::kFixed32 || KindOf(list) == ListKind::kFixed64;
  int64_t count = 0;
  if (sent.list != TensorField::kNone) {
    if (fixed) {
      const std::string_view raw = FixedValues(sent);
      if (raw.size() % DTypeSize(dtype) != 0)
        return BadInput(key, absl::StrCat(FieldName(sent.list), " ends in the middle of a value"));
      count = static_cast<int64_t>(raw.size()) / size;
      if (count == elements) out->view.data = const_cast<char*>(raw.data());
    } else {
      count = sent.proto != nullptr ? CountParsed(sent) : CountVarints(sent.packed);
    }
    if (count > elements) return TooManyValues(key, sent, count, elements);
  }
  if (out->view.data != nullptr) return absl::OkStatus();
  out->repeats = count < elements;
  out->bytes = dtype == DType::kString ? StringBytes(sent, elements, count) : elements * size;
  return absl::OkStatus();
}

void* DecodeStrings(const SentTensor& sent, int64_t elements, InputStorage* storage) {
  const int64_t count = sent.list == TensorField::kNone ? 0 : CountParsed(sent);
  storage->Pay(StringBytes(sent, elements, count));
  std::string* const out = storage->AllocateStrings(elements);
  for (int64_t i = 0; i < elements && count > 0; ++i)
    out[i] = sent.proto->string_val(static_cast<int>(std::min(i, count - 1)));
  return out;
}

}  // namespace

absl::Status InputStorage::Charge(int64_t bytes) {
  if (bytes > left_) return TooMuchUnfolded();
  left_ -= bytes;
  return absl::OkStatus();
}

void InputStorage::Pay(int64_t bytes) {
  constexpr int64_t kSmall = 64 << 10;
  if (memory_ == nullptr || bytes < kSmall) return;
  absl::StatusOr<MemoryShare> share = memory_->Take(bytes);
  if (!share.ok()) throw std::bad_alloc();
  paid_.Add(*std::move(share));
}

void* InputStorage::Allocate(int64_t bytes) {
  Pay(bytes);
  buffers_.emplace_back(new std::byte[static_cast<size_t>(bytes)]);
  return buffers_.back().get();
}

std::string* InputStorage::AllocateStrings(int64_t count) {
  strings_.emplace_back(new std::string[static_cast<size_t>(count)]);
  return strings_.back().get();
}

absl::StatusOr<DType> SentDtype(std::string_view key, const SentTensor& sent) {
  if (sent.dtype == 0) return BadInput(key, "no dtype was sent");
  absl::StatusOr<DType> dtype = DTypeFromNumber(sent.dtype);
  if (!dtype.ok()) return BadInput(key, std::string(dtype.status().message()));
  if (ListOf(*dtype) == TensorField::kNone) {
    return BadInput(key, absl::StrCat(DTypeName(*dtype), " cannot be sent in a request"));
  }
  return dtype;
}

absl::StatusOr<CheckedTensor> CheckTensor(std::string_view key, const SentTensor& sent) {
  FLOE_ASSIGN_OR_RETURN(const DType dtype, SentDtype(key, sent));
  if (sent.unknown_rank) return BadInput(key, "its shape has an unknown rank; send every dim");
  const size_t element_size = dtype == DType::kString ? sizeof(std::string) : DTypeSize(dtype);
  const absl::StatusOr<int64_t> elements =
      CheckedElements(sent.shape.dims(), element_size, kMaxTensorBytes);
  if (!elements.ok()) return BadInput(key, std::string(elements.status().message()));
  CheckedTensor checked{{dtype, sent.shape, nullptr}};
  if (sent.content.empty()) {
    FLOE_RETURN_IF_ERROR(CheckList(key, sent, *elements, &checked));
  } else {
    FLOE_RETURN_IF_ERROR(CheckContent(key, dtype, sent, *elements));
    checked.view.data = const_cast<char*>(sent.content.data());
  }
  return checked;
}

void DecodeTensor(const SentTensor& sent, InputStorage* storage, TensorView* view) {
  if (view->data != nullptr) return;
  const DType dtype = view->dtype;
  const int64_t elements = view->elements();
  if (dtype == DType::kString) {
    view->data = DecodeStrings(sent, elements, storage);
  } else if (sent.list == TensorField::kNone) {
    const int64_t bytes = elements * static_cast<int64_t>(DTypeSize(dtype));
    view->data = storage->Allocate(bytes);
    std::memset(view->data, 0, static_cast<size_t>(bytes));
  } else if (KindOf(sent.list) != ListKind::kVarint) {
    view->data = ExpandRaw(FixedValues(sent), elements, DTypeSize(dtype), storage);
  } else if (sent.proto != nullptr) {
    view->data = ExpandParsed(dtype, elements, sent, storage);
  } else {
    view->data = ExpandWalked(dtype, elements, sent, storage);
  }
}

absl::StatusOr<TensorView> ReadTensor(std::string_view key, const SentTensor& sent,
                                      InputStorage* storage) {
  FLOE_ASSIGN_OR_RETURN(CheckedTensor checked, CheckTensor(key, sent));
  FLOE_RETURN_IF_ERROR(storage->Charge(checked.bytes));
  DecodeTensor(sent, storage, &checked.view);
  return checked.view;
}

}  // namespace floe::server
