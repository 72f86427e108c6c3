// The counter-based generator of TensorFlow's random kernels, for the one op whose answers are
// compared number by number.
#pragma once

#include <array>
#include <cstdint>

namespace floe::kernels {

// Philox4x32 with 10 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
// The key is `seed`, the upper half of the counter `stream`, as TensorFlow uses its two seeds.
// Numbers are drawn from block `first` on, four in each.
class Philox {
 public:
  Philox(uint64_t seed, uint64_t stream, uint64_t first)
      : seed_(seed), stream_(stream), block_(first) {}

  uint32_t Next() {
    if (used_ == values_.size()) {
      values_ = Block(block_++);
      used_ = 0;
    }
    return values_[used_++];
  }
  // [0, 1) in steps of 2^-23.
  float Unit() { return static_cast<float>(Next() & 0x7fffff) * 0x1p-23f; }
  // [0, n), every number as likely; n > 0.
  uint32_t Below(uint32_t n) {
    if ((n & (n - 1)) == 0) return Next() & (n - 1);
    const uint32_t uneven = UINT32_MAX % n + 1;  // the remainder of 2^32 by n
    uint32_t value = Next();
    while (value < uneven) value = Next();
    return value % n;
  }

 private:
  using Words = std::array<uint32_t, 4>;

  Words Block(uint64_t place) const {
    constexpr uint64_t kFactor0 = 0xD2511F53, kFactor1 = 0xCD9E8D57;
    constexpr uint32_t kStep0 = 0x9E3779B9, kStep1 = 0xBB67AE85;
    Words c = {Low(place), High(place), Low(stream_), High(stream_)};
    uint32_t key0 = Low(seed_), key1 = High(seed_);
    for (int round = 0; round < 10; ++round, key0 += kStep0, key1 += kStep1) {
      const uint64_t a = kFactor0 * c[0], b = kFactor1 * c[2];
      c = {High(b) ^ c[1] ^ key0, Low(b), High(a) ^ c[3] ^ key1, Low(a)};
    }
    return c;
  }
  static uint32_t Low(uint64_t x) { return static_cast<uint32_t>(x); }
  static uint32_t High(uint64_t x) { return static_cast<uint32_t>(x >> 32); }

  const uint64_t seed_, stream_;
  uint64_t block_;
  Words values_ = {};
  size_t used_ = 4;
};

}  // namespace floe::kernels
