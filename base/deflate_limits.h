// How much deflate can shrink what it packs; files that claim more are broken or hostile.
#pragma once

#include <cstdint>

namespace floe {

inline constexpr int64_t kMaxDeflateRatio = 1032;  // a property of the format
inline constexpr int64_t kDeflateSlackBytes = 4096;

}  // namespace floe
