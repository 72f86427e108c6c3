// What random ops with a seed as an input share: where the numbers of a seed begin. Also numbers of
// 64 bits and normal ones made of them, with TensorFlow's bits.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/status.h"
#include "kernels/cpu/random/philox.h"
#include "kernels/kernel.h"

namespace floe::kernels {

inline constexpr int32_t kPhiloxAlgorithm = 1;

// Where a generator's blocks begin.
struct Start {
  uint64_t key = 0, low = 0, high = 0;  // the counter's two halves

  Philox At(uint64_t block) const {
    const uint64_t place = low + block;
    return Philox(key, high + (place < low ? 1 : 0), place);
  }
};

// The two numbers of a seed, mixed so that neither has to be strong. INVALID_ARGUMENT unless it is
// a vector of two integers.
absl::StatusOr<Start> StartOfSeed(const TensorView& seed);
// Inputs 1 to 3: key, counter, algorithm. INVALID_ARGUMENT or UNIMPLEMENTED.
absl::StatusOr<Start> StartOfCounter(const KernelContext& ctx);

// Of a kernel of version 1 (input 1 is the seed) or 2.
template <bool kSecond>
absl::StatusOr<Start> StartOf(const KernelContext& ctx) {
  if (kSecond) return StartOfCounter(ctx);
  return StartOfSeed(ctx.in(1));
}

// [0, 1) in steps of 2^-52.
inline double Unit64(Philox* numbers) {
  const uint64_t high = numbers->Next() & 0xfffff;
  return static_cast<double>(high << 32 | numbers->Next()) * 0x1p-52;
}

inline constexpr double kTwoPi = 2 * 3.14159265358979323846;

// Box and Muller's pair.
inline void NormalPair(Philox* numbers, float* pair) {
  const float u = std::max(numbers->Unit(), 1e-7f);
  const auto angle = static_cast<float>(kTwoPi * static_cast<double>(numbers->Unit()));
  const float radius = std::sqrt(-2.0f * std::log(u));
  pair[0] = std::sin(angle) * radius;
  pair[1] = std::cos(angle) * radius;
}
inline void NormalPair(Philox* numbers, double* pair) {
  const double u = std::max(Unit64(numbers), 1e-7), angle = kTwoPi * Unit64(numbers),
               radius = std::sqrt(-2.0 * std::log(u));
  pair[0] = std::sin(angle) * radius;
  pair[1] = std::cos(angle) * radius;
}

}  // namespace floe::kernels
