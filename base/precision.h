// How weights are kept that a run reads once: those of matrix products and recurrent layers.
// Arithmetic is in float32 in any case.
#pragma once

#include <cstdint>

namespace floe {

enum class Precision : uint8_t { kFloat32, kBf16 };  // kBf16: rounded to bfloat16 when packed

}  // namespace floe
