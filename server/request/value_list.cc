// Counts values as their message is read, and decodes them, on the thread that runs the request
// where they are many.
#include "server/request/value_list.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/status.h"

namespace floe::server {
namespace {

constexpr size_t kLengthBytes = 4;  // before each string of a kPrefixed list

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

// The numbers of a list of varints, as protobuf's own classes would give them; the last one is
// repeated.
template <typename T>
void* DecodeVarints(const ValueList& list, int64_t elements, InputStorage* storage) {
  auto* const out = static_cast<T*>(storage->Allocate(elements * static_cast<int64_t>(sizeof(T))));
  T* at = out;
  ForEachVarintOf(list, [&at](uint64_t value) { *at++ = static_cast<T>(value); });
  std::fill(at, out + elements, at[-1]);
  return out;
}

void* DecodeVarints(const ValueList& list, DType dtype, int64_t elements, InputStorage* storage) {
  if (dtype == DType::kBool) return DecodeVarints<bool>(list, elements, storage);
  switch (DTypeSize(dtype)) {
    case 1:
      return DecodeVarints<uint8_t>(list, elements, storage);
    case 2:
      return DecodeVarints<uint16_t>(list, elements, storage);
    case 4:
      return DecodeVarints<uint32_t>(list, elements, storage);
    default:
      return DecodeVarints<uint64_t>(list, elements, storage);
  }
}

// Values whose bytes on the wire are those of the tensor.
void* DecodeFixed(const ValueList& list, size_t size, int64_t elements, InputStorage* storage) {
  auto* const out = static_cast<char*>(storage->Allocate(elements * static_cast<int64_t>(size)));
  char* at = out;
  value_list::ForEachPiece(list, [&at](std::string_view piece) {
    std::memcpy(at, piece.data(), piece.size());
    at += piece.size();
  });
  const char* const last = at - size;
  for (const char* const end = out + static_cast<size_t>(elements) * size; at != end; at += size)
    std::memcpy(at, last, size);
  return out;
}

// Takes the next string of a kPrefixed list. False: it is cut off.
bool TakePrefixed(std::string_view* bytes, std::string_view* string) {
  uint32_t size;
  if (bytes->size() < kLengthBytes) return false;
  std::memcpy(&size, bytes->data(), kLengthBytes);
  bytes->remove_prefix(kLengthBytes);
  if (bytes->size() < size) return false;
  *string = bytes->substr(0, size);
  bytes->remove_prefix(size);
  return true;
}

void* DecodeStrings(const ValueList& list, int64_t elements, InputStorage* storage) {
  std::string* const out = storage->AllocateStrings(elements);
  if (list.kind == ListKind::kNone) return out;
  std::string* at = out;
  if (list.kind == ListKind::kPrefixed) {
    std::string_view left = list.packed, string;
    while (TakePrefixed(&left, &string)) *at++ = std::string(string);
    return out;
  }
  value_list::ForEachPiece(list, [&](std::string_view piece) {
    at->reserve(list.before.size() + piece.size());
    (*at++).append(list.before).append(piece);
  });
  std::fill(at, out + elements, std::string(list.last));
  return out;
}

}  // namespace

bool IsPieceOf(ListKind kind, WireType type) {
  if (type == WireType::kBytes) return true;
  return (kind == ListKind::kVarint && type == WireType::kVarint) ||
         (kind == ListKind::kFixed32 && type == WireType::kFixed32) ||
         (kind == ListKind::kFixed64 && type == WireType::kFixed64);
}

bool AddPiece(uint32_t field, ListKind kind, std::string_view piece, ValueList* list) {
  const int64_t values = CountValues(kind, piece);
  if (values < 0) return false;
  if (values == 0) return true;
  const bool first = list->values == 0;
  list->several_fields |= !first && list->field != field;
  if (first || field < list->field) {
    list->field = field;
    list->kind = kind;
  }
  list->values += values;
  list->bytes += static_cast<int64_t>(piece.size());
  list->packed = first && kind != ListKind::kStrings ? piece : std::string_view();
  list->last = piece;
  return true;
}

int64_t CountPrefixed(std::string_view bytes) {
  int64_t count = 0;
  std::string_view string;
  for (; !bytes.empty(); ++count)
    if (!TakePrefixed(&bytes, &string)) return -1;
  return count;
}

int64_t DecodedBytes(const ValueList& list, DType dtype, int64_t elements) {
  if (dtype != DType::kString) return elements * static_cast<int64_t>(DTypeSize(dtype));
  constexpr int64_t kMost = INT64_MAX / 4;
  const auto before = static_cast<int64_t>(list.before.size());
  if (before != 0 && elements > kMost / 2 / before) return kMost;
  const int64_t bytes =
      elements * (static_cast<int64_t>(sizeof(std::string)) + before) + list.bytes;
  const int64_t rest = elements - list.values, last = static_cast<int64_t>(list.last.size());
  if (list.kind == ListKind::kNone || last == 0) return bytes;
  return rest > (kMost - bytes) / last ? kMost : bytes + rest * last;
}

absl::Status DecodeValues(const ValueList& list, InputStorage* storage, TensorView* view) {
  if (view->data != nullptr) return absl::OkStatus();
  const DType dtype = view->dtype;
  const int64_t elements = view->elements();
  const int64_t bytes = DecodedBytes(list, dtype, elements);
  FLOE_RETURN_IF_ERROR(storage->Pay(bytes));
  if (dtype == DType::kString) {
    view->data = DecodeStrings(list, elements, storage);
  } else if (list.kind == ListKind::kNone) {
    view->data = storage->Allocate(bytes);
    std::memset(view->data, 0, static_cast<size_t>(bytes));
  } else if (list.kind == ListKind::kVarint) {
    view->data = DecodeVarints(list, dtype, elements, storage);
  } else {
    view->data = DecodeFixed(list, DTypeSize(dtype), elements, storage);
  }
  return absl::OkStatus();
}

}  // namespace floe::server
