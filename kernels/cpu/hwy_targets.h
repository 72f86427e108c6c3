// Which Highway targets are built. Include this before any hwy header in every file that uses
// Highway, so that all of them agree. Kept: the scalar fallback, SSE4, AVX2, AVX3 (AVX-512) and
// NEON; the others cost build time and win nothing for float32. SVE's sizeless vectors cannot be
// held in arrays, which the kernels do.
#pragma once

#ifdef HIGHWAY_HWY_DETECT_TARGETS_H_
#error "include kernels/cpu/hwy_targets.h before any header of Highway"
#endif

#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)

#include <hwy/targets.h>
