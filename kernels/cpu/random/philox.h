// The counter-based generator Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1,
// 2, 3", 2011), seeded and read as TensorFlow does. So seeded ops draw the same numbers.
#pragma once

#include <array>
#include <cstdint>

namespace floe::kernels {

class Philox {
 public:
  // `block`: how many blocks of four numbers are skipped.
  Philox(uint64_t seed, uint64_t seed2, uint64_t block)
      : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)},
        block_(block),
        stream_(seed2) {}

  uint32_t Next() {
    if (used_ == 4) {
      numbers_ = Block(block_++);
      used_ = 0;
    }
    return numbers_[used_++];
  }
  // [0, 1) in steps of 2^-23.
  float Unit() { return static_cast<float>(Next() & 0x7fffff) * 0x1p-23f; }
  // [0, bound), bound > 0, every number as likely as any other.
  uint32_t Below(uint32_t bound) {
    if ((bound & (bound - 1)) == 0) return Next() & (bound - 1);
    const uint32_t surplus = UINT32_MAX % bound + 1;
    uint32_t number = Next();
    while (number < surplus) number = Next();
    return number % bound;
  }

 private:
  std::array<uint32_t, 4> Block(uint64_t block) const {
    std::array<uint32_t, 4> c = {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                                 static_cast<uint32_t>(stream_),
                                 static_cast<uint32_t>(stream_ >> 32)};
    uint32_t k0 = key_[0], k1 = key_[1];
    for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
      const uint64_t a = uint64_t{0xD2511F53} * c[0], b = uint64_t{0xCD9E8D57} * c[2];
      c = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(b),
           static_cast<uint32_t>(a >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(a)};
    }
    return c;
  }

  std::array<uint32_t, 2> key_;
  uint64_t block_, stream_;
  std::array<uint32_t, 4> numbers_{};
  int used_ = 4;
};

}  // namespace floe::kernels
