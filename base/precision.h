// What matrix products and their like are made of. The sums are float32 in any case.
#pragma once

#include <cstdint>

namespace floe {

// On the CPU kBf16 rounds the weights of matrix products and recurrent layers to bfloat16 when they
// are packed, and kTf32 is float32. On a GPU both factors of matrix products and convolutions are
// rounded for its tensor cores, and recurrent layers stay in float32.
enum class Precision : uint8_t { kFloat32, kBf16, kTf32 };

}  // namespace floe
