// The sequence of numbers that random ops draw from.
#pragma once

#include <atomic>
#include <cmath>
#include <cstdint>

#include "model/attrs.h"

namespace floe::kernels {

// A counter through a mixer (splitmix64): a number of the sequence is a function of its place, so
// that runs only share the place of the next one.
class Sequence {
 public:
  explicit Sequence(uint64_t seed) : seed_(seed) {}
  uint64_t Reserve(uint64_t count) { return next_.fetch_add(count, std::memory_order_relaxed); }
  uint64_t At(uint64_t place) const {
    uint64_t z = seed_ + (place + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  // [0, 1) in steps of 2^-bits.
  double Fraction(uint64_t place, int bits) const {
    return std::ldexp(static_cast<double>(At(place) >> (64 - bits)), -bits);
  }
  // In steps that a float holds.
  double Unit(uint64_t place) const { return Fraction(place, 24); }
  double Normal(uint64_t place) const {
    const double radius = std::sqrt(-2 * std::log(1 - Unit(2 * place)));
    return radius * std::cos(6.283185307179586 * Unit(2 * place + 1));
  }

 private:
  uint64_t seed_;
  std::atomic<uint64_t> next_{0};
};

// From attributes seed and seed2; a number of its own for each kernel when both are 0.
uint64_t SeedOf(const Attrs& attrs);

}  // namespace floe::kernels
