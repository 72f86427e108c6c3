#include "kernels/cpu/parse/example_reader.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace floe::kernels {
namespace {

constexpr int kMaxVarint = 10;

// Calls each(type, bytes) for the values of field 1 of a list, packed or one by one.
template <class F>
bool ForEachChunk(std::string_view list, const F& each) {
  FieldReader reader(list);
  while (!reader.Done()) {
    uint32_t field;
    Wire type;
    std::string_view bytes;
    if (!reader.Next(&field, &type, &bytes)) return false;
    if (field == 1 && !each(type, bytes)) return false;
  }
  return true;
}

// Varints end with a byte below 0x80; -1 where the last does not, or one is too long.
int64_t CountVarints(std::string_view bytes) {
  int64_t count = 0;
  int length = 0;
  for (const char byte : bytes) {
    if (++length > kMaxVarint) return -1;
    if (static_cast<uint8_t>(byte) >= 0x80) continue;
    ++count;
    length = 0;
  }
  return length == 0 ? count : -1;
}

// How many values a chunk holds; -1 when it holds no values of the type.
int64_t CountIn(DType dtype, Wire type, std::string_view bytes) {
  const bool packed = type == Wire::kBytes;
  if (dtype == DType::kString) return packed ? 1 : -1;
  if (dtype == DType::kFloat32)
    return (packed || type == Wire::kFixed32) && bytes.size() % sizeof(float) == 0
               ? static_cast<int64_t>(bytes.size() / sizeof(float))
               : -1;
  return packed || type == Wire::kVarint ? CountVarints(bytes) : -1;
}

}  // namespace

bool FieldReader::Varint(uint64_t* value) {
  *value = 0;
  for (int i = 0; i < kMaxVarint && static_cast<size_t>(i) < left_.size(); ++i) {
    const auto byte = static_cast<uint8_t>(left_[static_cast<size_t>(i)]);
    *value |= static_cast<uint64_t>(byte & 0x7F) << (7 * i);
    if (byte >= 0x80) continue;
    left_.remove_prefix(static_cast<size_t>(i) + 1);
    return true;
  }
  return false;
}

bool FieldReader::Take(uint64_t size, std::string_view* value) {
#ifdef FLOE_FUZZ_PLANTED_BUG  // a check left out, for scripts/fuzz --self-test
  *value = std::string_view(left_.data(), size);
  size = std::min<uint64_t>(size, left_.size());
#else
  if (size > left_.size()) return false;
  *value = left_.substr(0, size);
#endif
  left_.remove_prefix(size);
  return true;
}

// The fields up to the group's end, groups inside it included.
bool FieldReader::SkipGroup(uint32_t field) {
  constexpr size_t kMaxDepth = 100;
  std::vector<uint32_t> open = {field};
  while (!open.empty()) {
    uint64_t tag, size;
    std::string_view value;
    if (!Varint(&tag)) return false;
    const auto inner = static_cast<uint32_t>(tag >> 3);
    switch (tag & 7) {
      case 0:
        if (!Varint(&size)) return false;
        break;
      case 1:
        if (!Take(8, &value)) return false;
        break;
      case 2:
        if (!Varint(&size) || !Take(size, &value)) return false;
        break;
      case 3:
        if (open.size() >= kMaxDepth) return false;
        open.push_back(inner);
        break;
      case 4:
        if (inner != open.back()) return false;
        open.pop_back();
        break;
      case 5:
        if (!Take(4, &value)) return false;
        break;
      default:
        return false;
    }
  }
  return true;
}

bool FieldReader::Next(uint32_t* field, Wire* type, std::string_view* value) {
  uint64_t tag, size;
  if (!Varint(&tag) || tag > UINT32_MAX || tag >> 3 == 0) return false;
  *field = static_cast<uint32_t>(tag >> 3);
  *type = static_cast<Wire>(tag & 7);
  *value = {};
  const std::string_view at = left_;
  switch (*type) {
    case Wire::kVarint:
      if (!Varint(&size)) return false;
      *value = at.substr(0, at.size() - left_.size());
      return true;
    case Wire::kFixed64:
      return Take(8, value);
    case Wire::kBytes:
      return Varint(&size) && Take(size, value);
    case Wire::kGroup:
      return SkipGroup(*field);
    case Wire::kFixed32:
      return Take(4, value);
  }
  return false;
}

bool ReadFeature(std::string_view feature, FeatureList* list) {
  constexpr DType kKinds[] = {DType::kInvalid, DType::kString, DType::kFloat32, DType::kInt64};
  *list = {};
  FieldReader reader(feature);
  while (!reader.Done()) {
    uint32_t field;
    Wire type;
    std::string_view value;
    if (!reader.Next(&field, &type, &value)) return false;
    if (field > 3 || type != Wire::kBytes) continue;
    list->dtype = kKinds[field];
    list->bytes = value;
  }
  return ForEachChunk(list->bytes, [list](Wire type, std::string_view bytes) {
    const int64_t count = CountIn(list->dtype, type, bytes);
    list->count += std::max<int64_t>(count, 0);
    return count >= 0;
  });
}

void WriteFloats(const FeatureList& list, float* to) {
  (void)ForEachChunk(list.bytes, [&to](Wire, std::string_view bytes) {
    if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
    to += bytes.size() / sizeof(float);
    return true;
  });
}

void WriteInts(const FeatureList& list, int64_t* to) {
  (void)ForEachChunk(list.bytes, [&to](Wire, std::string_view bytes) {
    uint64_t value = 0;
    int shift = 0;
    for (const char byte : bytes) {
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      shift += 7;
      if (static_cast<uint8_t>(byte) >= 0x80) continue;
      *to++ = static_cast<int64_t>(value);
      value = 0;
      shift = 0;
    }
    return true;
  });
}

void WriteStrings(const FeatureList& list, std::string* to) {
  (void)ForEachChunk(list.bytes, [&to](Wire, std::string_view bytes) {
    *to++ = std::string(bytes);
    return true;
  });
}

}  // namespace floe::kernels
