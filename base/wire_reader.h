// A walker over one protobuf message: fields in turn, as views into its bytes.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace floe {

enum class WireType : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// Every read checks its bounds, so any bytes may be given. A false return means that the bytes are
// no message, or an unusual one (groups); the reader is then of no further use. Assumes a
// little-endian host.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes)
      : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  bool Done() const { return at_ == end_; }

  bool ReadTag(uint32_t* field, WireType* type) {
    uint64_t tag;
    if (!ReadShortVarint(&tag) || tag > UINT32_MAX) return false;
    *field = static_cast<uint32_t>(tag >> 3);
    *type = static_cast<WireType>(tag & 7);
    return *field != 0 && (*type == WireType::kVarint || *type == WireType::kFixed64 ||
                           *type == WireType::kBytes || *type == WireType::kFixed32);
  }

  bool ReadVarint(uint64_t* value) {
    uint64_t result = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ == end_) return false;
      const auto byte = static_cast<uint8_t>(*at_++);
      result |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) {
        *value = result;
        return shift < 63 || byte <= 1;  // the tenth byte has room for one bit
      }
    }
    return false;
  }

  bool ReadBytes(std::string_view* bytes) {
    uint64_t size;
    if (!ReadShortVarint(&size)) return false;
#ifndef FLOE_FUZZ_PLANTED_BUG  // a check left out, for scripts/fuzz --self-test
    if (size > static_cast<uint64_t>(end_ - at_)) return false;
#endif
    *bytes = std::string_view(at_, size);
    at_ += size;
    return true;
  }

  bool Skip(WireType type) {
    uint64_t number;
    std::string_view bytes;
    switch (type) {
      case WireType::kVarint:
        return ReadVarint(&number);
      case WireType::kBytes:
        return ReadBytes(&bytes);
      case WireType::kFixed64:
        return Advance(8);
      case WireType::kFixed32:
        return Advance(4);
    }
    return false;
  }

 private:
  // Tags and sizes, which protobuf refuses when they are longer than 5 bytes.
  bool ReadShortVarint(uint64_t* value) {
    const char* const start = at_;
    return ReadVarint(value) && at_ - start <= 5;
  }
  bool Advance(ptrdiff_t bytes) {
    if (end_ - at_ < bytes) return false;
    at_ += bytes;
    return true;
  }

  const char* at_;
  const char* end_;
};

}  // namespace floe
