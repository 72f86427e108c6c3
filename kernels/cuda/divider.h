// Division by numbers that a launch is made with: a multiplication and a shift, since a GPU has no
// instruction for it. T. Granlund and P. L. Montgomery, Division by Invariant Integers using
// Multiplication, PLDI 1994.
#pragma once

#include <cstdint>

namespace floe::cuda {

// By 1 to 2^31 - 1. See Divide in index.cuh.
struct Divider {
  uint32_t divisor, multiplier, shift;
};

inline Divider DividerOf(int64_t divisor) {
  uint32_t shift = 0;
  while ((int64_t{1} << shift) < divisor) ++shift;
  const uint64_t d = static_cast<uint64_t>(divisor);
  const uint64_t multiplier = (uint64_t{1} << 32) * ((uint64_t{1} << shift) - d) / d + 1;
  return {static_cast<uint32_t>(d), static_cast<uint32_t>(multiplier), shift};
}

}  // namespace floe::cuda
