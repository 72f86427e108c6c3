// Which instruction set the CPU kernels use.
#pragma once

#include <cstdint>
#include <string>

namespace floe::kernels {

// Settles the level once: the CPU's best, lowered by FLOE_FORCE_ISA=scalar|sse4|avx2|avx512|neon
// when set (an unknown or unsupported name is reported on stderr and ignored). Call before
// HWY_DYNAMIC_DISPATCH; every Pick function does.
void ChooseIsa();

// Lower-case name of the level in use, e.g. "avx512".
std::string IsaName();

}  // namespace floe::kernels
