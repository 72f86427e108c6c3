// A walker over one protobuf message: fields in turn, as views into its bytes.
#pragma once

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <cstdint>
#include <string_view>

namespace floe {

enum class WireType : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kGroup = 3, kFixed32 = 5 };

// Any bytes may be given. A false return means that the bytes are no message; the reader is then of
// no further use. Assumes a little-endian host and less than 2 GiB.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes)
      : bytes_(bytes),
        in_(reinterpret_cast<const uint8_t*>(bytes.data()), static_cast<int>(bytes.size())) {}

  bool Done() const { return Position() == bytes_.size(); }

  bool ReadTag(uint32_t* field, WireType* type) {
    tag_ = in_.ReadTag();
    *field = tag_ >> 3;
    *type = static_cast<WireType>(tag_ & 7);
    return *field != 0;
  }

  bool ReadVarint(uint64_t* value) { return in_.ReadVarint64(value); }

  bool ReadBytes(std::string_view* bytes) {
    uint32_t size;
    if (!in_.ReadVarint32(&size)) return false;
    const size_t start = Position();
    *bytes = std::string_view(bytes_.data() + start, size);
#ifdef FLOE_FUZZ_PLANTED_BUG  // a check left out, for scripts/fuzz --self-test
    return in_.Skip(static_cast<int>(size)) || true;
#else
    return size <= bytes_.size() - start && in_.Skip(static_cast<int>(size));
#endif
  }

  // The bytes of the field's value: those of a length-delimited one without the length.
  bool ReadValue(WireType type, std::string_view* bytes) {
    if (type == WireType::kBytes) return ReadBytes(bytes);
    const size_t start = Position();
    if (!Skip()) return false;
    *bytes = bytes_.substr(start, Position() - start);
    return true;
  }

  // Passes over the value of the field whose tag was read last.
  bool Skip() { return google::protobuf::internal::WireFormatLite::SkipField(&in_, tag_); }

 private:
  size_t Position() const { return static_cast<size_t>(in_.CurrentPosition()); }

  const std::string_view bytes_;
  google::protobuf::io::CodedInputStream in_;
  uint32_t tag_ = 0;
};

// Calls visit(field, bytes) for each length-delimited field up to number `last`. False: the bytes
// are no message, or a visit said so.
template <typename Visit>
bool ForEachBytesField(std::string_view message, uint32_t last, Visit visit) {
  WireReader reader(message);
  while (!reader.Done()) {
    uint32_t field;
    WireType type;
    std::string_view part;
    if (!reader.ReadTag(&field, &type)) return false;
    const bool known = field <= last && type == WireType::kBytes;
    if (known ? !reader.ReadBytes(&part) || !visit(field, part) : !reader.Skip()) return false;
  }
  return true;
}

// The number in that field of a message, of several the last one; left as it is where there is
// none. False: the bytes are no message.
inline bool ReadNumber(std::string_view message, uint32_t wanted, int64_t* number) {
  WireReader reader(message);
  while (!reader.Done()) {
    uint32_t field;
    WireType type;
    uint64_t value;
    if (!reader.ReadTag(&field, &type)) return false;
    if (field != wanted || type != WireType::kVarint) {
      if (!reader.Skip()) return false;
      continue;
    }
    if (!reader.ReadVarint(&value)) return false;
    *number = static_cast<int64_t>(value);
  }
  return true;
}

}  // namespace floe
