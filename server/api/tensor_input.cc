#include "server/api/tensor_input.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "server/api/names.h"
#include "server/api/unfolding.h"
#include "server/api/wire_reader.h"
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
absl::StatusOr<void*> Expand(int64_t elements, int64_t count, InputStorage* storage, Next next) {
  FLOE_ASSIGN_OR_RETURN(void* memory,
                        storage->Allocate(elements * static_cast<int64_t>(sizeof(T))));
  T* out = static_cast<T*>(memory);
  T last{};
  for (int64_t i = 0; i < count; ++i) out[i] = last = next();
  std::fill(out + count, out + elements, last);
  return memory;
}

// Values whose bytes on the wire are those of the tensor: used in place when there are enough.
absl::StatusOr<void*> ExpandRaw(std::string_view raw, int64_t elements, size_t size,
                                InputStorage* storage) {
  const int64_t count = static_cast<int64_t>(raw.size() / size);
  if (count == elements) return const_cast<char*>(raw.data());
  FLOE_ASSIGN_OR_RETURN(void* memory, storage->Allocate(elements * static_cast<int64_t>(size)));
  auto* out = static_cast<char*>(memory);
  std::memcpy(out, raw.data(), raw.size());
  const char* last = raw.data() + raw.size() - size;
  for (int64_t i = count; i < elements; ++i) std::memcpy(out + i * size, last, size);
  return memory;
}

// The numbers of a varint list as T, as protobuf's own classes would give them.
template <typename T, typename Next>
absl::StatusOr<void*> ExpandAs(DType dtype, int64_t elements, int64_t count, InputStorage* storage,
                               Next next) {
  static_assert(sizeof(T) == 8);
  switch (dtype) {
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
absl::StatusOr<void*> ExpandRepeated(DType dtype, int64_t elements, const Repeated& values,
                                     InputStorage* storage) {
  auto at = values.begin();
  return ExpandAs<int64_t>(dtype, elements, values.size(), storage,
                           [&at] { return static_cast<int64_t>(*at++); });
}

absl::StatusOr<void*> ExpandParsed(DType dtype, int64_t elements, const SentTensor& sent,
                                   InputStorage* storage) {
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

absl::StatusOr<void*> ExpandWalked(DType dtype, int64_t elements, int64_t count,
                                   const SentTensor& sent, InputStorage* storage) {
  WireReader reader(sent.packed);
  return ExpandAs<int64_t>(dtype, elements, count, storage, [&reader] {
    uint64_t value = 0;
    reader.ReadVarint(&value);  // the walk has checked the list
    return static_cast<int64_t>(value);
  });
}

int64_t CountVarints(std::string_view packed) {
  return std::count_if(packed.begin(), packed.end(), [](char c) { return (c & 0x80) == 0; });
}

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

absl::StatusOr<void*> ReadStrings(std::string_view key, const SentTensor& sent, int64_t elements,
                                  InputStorage* storage) {
  const int64_t count = sent.list == TensorField::kNone ? 0 : CountParsed(sent);
  if (count > elements) return TooManyValues(key, sent, count, elements);
  FLOE_ASSIGN_OR_RETURN(std::string* const out, storage->AllocateStrings(elements));
  for (int64_t i = 0; i < elements && count > 0; ++i) {
    const std::string& value = sent.proto->string_val(static_cast<int>(std::min(i, count - 1)));
    FLOE_RETURN_IF_ERROR(storage->Charge(static_cast<int64_t>(value.size())));
    out[i] = value;
  }
  return static_cast<void*>(out);
}

absl::StatusOr<void*> ReadContent(std::string_view key, DType dtype, const SentTensor& sent,
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
  if (dtype == DType::kBool) {
    for (const char byte : sent.content) {
      if ((byte & ~1) == 0) continue;
      const int number = static_cast<uint8_t>(byte);
      return BadInput(key,
                      absl::StrCat("tensor_content of bool holds byte ", number, ", not 0 or 1"));
    }
  }
  return const_cast<char*>(sent.content.data());
}

absl::StatusOr<void*> ReadFixed(std::string_view key, DType dtype, const SentTensor& sent,
                                int64_t elements, InputStorage* storage) {
  const size_t size = DTypeSize(dtype);
  const std::string_view raw = sent.proto != nullptr ? RawOf(*sent.proto, sent.list) : sent.packed;
  if (raw.size() % size != 0) {
    return BadInput(key, absl::StrCat(FieldName(sent.list), " ends in the middle of a value"));
  }
  const auto count = static_cast<int64_t>(raw.size() / size);
  if (count > elements) return TooManyValues(key, sent, count, elements);
  return ExpandRaw(raw, elements, size, storage);
}

absl::StatusOr<void*> ReadVarints(std::string_view key, DType dtype, const SentTensor& sent,
                                  int64_t elements, InputStorage* storage) {
  const int64_t count = sent.proto != nullptr ? CountParsed(sent) : CountVarints(sent.packed);
  if (count > elements) return TooManyValues(key, sent, count, elements);
  if (sent.proto != nullptr) return ExpandParsed(dtype, elements, sent, storage);
  return ExpandWalked(dtype, elements, count, sent, storage);
}

// Values in the list of `dtype`, or none at all.
absl::StatusOr<void*> ReadList(std::string_view key, DType dtype, const SentTensor& sent,
                               int64_t elements, InputStorage* storage) {
  const TensorField list = ListOf(dtype);
  if (sent.several_lists) return BadInput(key, "values in more than one list");
  if (sent.list != TensorField::kNone && sent.list != list) {
    return BadInput(key,
                    absl::StrCat("values in ", FieldName(sent.list), ", but ", DTypeName(dtype),
                                 " is read from ", FieldName(list), " or tensor_content"));
  }
  if (dtype == DType::kString) return ReadStrings(key, sent, elements, storage);
  if (sent.list == TensorField::kNone) {
    const int64_t bytes = elements * static_cast<int64_t>(DTypeSize(dtype));
    FLOE_ASSIGN_OR_RETURN(void* const zeros, storage->Allocate(bytes));
    std::memset(zeros, 0, static_cast<size_t>(bytes));
    return zeros;
  }
  if (KindOf(list) == ListKind::kVarint) return ReadVarints(key, dtype, sent, elements, storage);
  return ReadFixed(key, dtype, sent, elements, storage);
}

}  // namespace

absl::Status InputStorage::Charge(int64_t bytes) {
  if (bytes > left_) return TooMuchUnfolded();
  left_ -= bytes;
  return absl::OkStatus();
}

absl::StatusOr<void*> InputStorage::Allocate(int64_t bytes) {
  FLOE_RETURN_IF_ERROR(Charge(bytes));
  buffers_.emplace_back(new std::byte[static_cast<size_t>(bytes)]);
  return buffers_.back().get();
}

absl::StatusOr<std::string*> InputStorage::AllocateStrings(int64_t count) {
  FLOE_RETURN_IF_ERROR(Charge(count * static_cast<int64_t>(sizeof(std::string))));
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

absl::StatusOr<TensorView> ReadTensor(std::string_view key, const SentTensor& sent,
                                      InputStorage* storage) {
  FLOE_ASSIGN_OR_RETURN(const DType dtype, SentDtype(key, sent));
  if (sent.unknown_rank) return BadInput(key, "its shape has an unknown rank; send every dim");
  const size_t element_size = dtype == DType::kString ? sizeof(std::string) : DTypeSize(dtype);
  const absl::StatusOr<int64_t> elements =
      CheckedElements(sent.shape.dims(), element_size, kMaxTensorBytes);
  if (!elements.ok()) return BadInput(key, std::string(elements.status().message()));
  absl::StatusOr<void*> data = sent.content.empty() ? ReadList(key, dtype, sent, *elements, storage)
                                                    : ReadContent(key, dtype, sent, *elements);
  if (!data.ok()) return std::move(data).status();
  return TensorView{dtype, sent.shape, *data};
}

}  // namespace floe::server
