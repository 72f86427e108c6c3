// Numbers of a few bytes each, as protobuf and tables of checkpoints write them: seven bits a byte,
// the lowest first.
#pragma once

#include <cstdint>
#include <string_view>

namespace floe {

// Takes a number off the front of `bytes`; false where they end within it, or it has over 64 bits.
inline bool TakeVarint(std::string_view* bytes, uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 64 && !bytes->empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes->front());
    bytes->remove_prefix(1);
    *value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

}  // namespace floe
