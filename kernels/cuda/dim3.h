// How many blocks a launch has, by axis.
#pragma once

#include <cstdint>

namespace floe::cuda {

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
};

}  // namespace floe::cuda
