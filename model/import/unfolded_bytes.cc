#include "model/import/unfolded_bytes.h"

#include <algorithm>

#include "base/wire_reader.h"

namespace floe {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

// Upper bounds of what one of each takes beside its bytes: the object, its pointer in a list that
// has grown by doubling, and what the allocator adds.
constexpr int64_t kStringBytes = 96;
constexpr int64_t kNumberBytes = 16;
constexpr int kMostDepth = 100;  // protobuf's

// Of a packed list of numbers.
int64_t PackedBytes(std::string_view part, const FieldDescriptor& field) {
  const auto varints = [part] {  // each ends with a byte below 128
    return std::count_if(part.begin(), part.end(), [](char c) { return c >= 0; });
  };
  switch (field.type()) {
    case FieldDescriptor::TYPE_INT64:
    case FieldDescriptor::TYPE_UINT64:
    case FieldDescriptor::TYPE_SINT64:
      return varints() * 8;
    case FieldDescriptor::TYPE_INT32:
    case FieldDescriptor::TYPE_UINT32:
    case FieldDescriptor::TYPE_SINT32:
    case FieldDescriptor::TYPE_ENUM:
      return varints() * 4;
    default:
      return static_cast<int64_t>(part.size());
  }
}

class Unfolding {
 public:
  // False: the bytes cannot be walked.
  bool Walk(std::string_view bytes, const Descriptor* type, int depth) {
    WireReader reader(bytes);
    while (!reader.Done()) {
      uint32_t number;
      WireType wire;
      if (!reader.ReadTag(&number, &wire) || wire == WireType::kGroup) return false;
      const FieldDescriptor* const field =
          type->FindFieldByNumber(static_cast<int>(std::min<uint32_t>(number, INT32_MAX)));
      if (wire != WireType::kBytes) {
        bytes_ += field != nullptr ? kNumberBytes : kStringBytes;
        if (!reader.Skip()) return false;
        continue;
      }
      std::string_view part;
      if (!reader.ReadBytes(&part)) return false;
      if (!Add(part, field, depth)) return false;
    }
    return true;
  }
  int64_t bytes() const { return bytes_; }

 private:
  bool Add(std::string_view part, const FieldDescriptor* field, int depth) {
    if (field == nullptr || field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      bytes_ += kStringBytes + static_cast<int64_t>(part.size());
      return true;
    }
    if (const Descriptor* const type = field->message_type()) {
      bytes_ += kUnfoldedMessage;
      return depth < kMostDepth && Walk(part, type, depth + 1);
    }
    bytes_ += kNumberBytes + PackedBytes(part, *field);
    return true;
  }

  int64_t bytes_ = 0;
};

}  // namespace

int64_t UnfoldedBytes(std::string_view bytes, const Descriptor& type) {
  Unfolding unfolding;
  return unfolding.Walk(bytes, &type, 0) ? unfolding.bytes() : INT64_MAX;
}

int64_t UnfoldedTextBytes(std::string_view text) {
  int64_t messages = 0, values = 0;
  for (const char c : text) {
    messages += c == '{' || c == '<';
    values += c == ':' || c == ',';
  }
  return messages * kUnfoldedMessage + values * kStringBytes + static_cast<int64_t>(text.size());
}

}  // namespace floe
