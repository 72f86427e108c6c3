#include "base/crc32c.h"

#ifdef __x86_64__
#include <nmmintrin.h>
#endif

#include <array>
#include <cstring>

namespace floe {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // reflected
constexpr int kSlices = 8;
using Tables = std::array<std::array<uint32_t, 256>, kSlices>;

// Table k advances a byte by k further bytes of zeros, so that eight bytes take eight independent
// look-ups.
constexpr Tables MakeTables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (int k = 1; k < kSlices; ++k) {
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const uint32_t crc = tables[k - 1][byte];
      tables[k][byte] = (crc >> 8) ^ tables[0][crc & 0xff];
    }
  }
  return tables;
}

constexpr Tables kTables = MakeTables();

uint32_t AddByTables(const unsigned char* bytes, size_t size, uint32_t crc) {
  for (; size >= kSlices; size -= kSlices, bytes += kSlices) {
    uint32_t low;
    std::memcpy(&low, bytes, sizeof low);
    if constexpr (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) low = __builtin_bswap32(low);
    low ^= crc;
    crc = kTables[7][low & 0xff] ^ kTables[6][low >> 8 & 0xff] ^ kTables[5][low >> 16 & 0xff] ^
          kTables[4][low >> 24] ^ kTables[3][bytes[4]] ^ kTables[2][bytes[5]] ^
          kTables[1][bytes[6]] ^ kTables[0][bytes[7]];
  }
  for (; size != 0; --size, ++bytes) crc = (crc >> 8) ^ kTables[0][(crc ^ *bytes) & 0xff];
  return crc;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) uint32_t AddByInstruction(const unsigned char* bytes, size_t size,
                                                            uint32_t crc) {
  uint64_t wide = crc;
  for (; size >= sizeof wide; size -= sizeof wide, bytes += sizeof wide) {
    uint64_t word;
    std::memcpy(&word, bytes, sizeof word);
    wide = _mm_crc32_u64(wide, word);
  }
  crc = static_cast<uint32_t>(wide);
  for (; size != 0; --size, ++bytes) crc = _mm_crc32_u8(crc, *bytes);
  return crc;
}
#endif

using Add = uint32_t (*)(const unsigned char* bytes, size_t size, uint32_t crc);
Add PickAdd() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("sse4.2")) return AddByInstruction;
#endif
  return AddByTables;
}

}  // namespace

uint32_t Crc32c(const void* data, size_t size, uint32_t before) {
  static const Add add = PickAdd();
  return ~add(static_cast<const unsigned char*>(data), size, ~before);
}

uint32_t Crc32cByTables(const void* data, size_t size, uint32_t before) {
  return ~AddByTables(static_cast<const unsigned char*>(data), size, ~before);
}

}  // namespace floe
