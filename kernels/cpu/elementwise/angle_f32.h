// Trigonometric functions of float32 and their inverses, by Highway's library.
#pragma once

#include <string>

#include "kernels/cpu/elementwise/unary_f32.h"

namespace floe::kernels {

// As FindUnaryF32, which has these too.
UnaryF32 FindAngleF32(const std::string& op);

}  // namespace floe::kernels
