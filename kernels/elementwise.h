// Kernels that compute each output element from the elements at its place: what chains of them need
// to be run tile by tile.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/kernel.h"

namespace floe {

// `step` 1: a run of elements; 0: one element for all places.
struct TileOperand {
  const void* data = nullptr;
  int64_t step = 0;
};

// Threading: as Kernel.
class ElementwiseKernel : public Kernel {
 public:
  // n elements of output 0, with the bits that Run gives them. One operand at least steps, or n is
  // 1. `out` may be an operand whose elements have the output's size. False: Failure() says why.
  virtual bool RunTile(absl::Span<const TileOperand> in, void* out, int64_t n) const = 0;
  virtual const char* Failure() const { return ""; }
};

// loop(steps...), with constants in place of steps, each of which is 0 or 1: the compiler makes
// vectors of a loop only where it knows them.
template <class Loop>
auto WithConstantSteps(const Loop& loop) {
  return loop();
}
template <class Loop, class... Steps>
auto WithConstantSteps(const Loop& loop, int64_t step, Steps... steps) {
  const auto with = [&](auto constant) {
    return WithConstantSteps([&](auto... more) { return loop(constant, more...); }, steps...);
  };
  return step == 0 ? with(std::integral_constant<int64_t, 0>())
                   : with(std::integral_constant<int64_t, 1>());
}

}  // namespace floe
