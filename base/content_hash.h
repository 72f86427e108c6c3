// ContentHash: 128 bits that stand for bytes, as long as the process lives. The hash is XXH3 with a
// random secret, so that nobody can prepare two contents that get the same one.
#pragma once

#include <cstddef>

#include "absl/numeric/int128.h"

namespace floe {

// Of `size` bytes, at memory speed. Other processes, those forked before the first call included,
// get other numbers. Any thread.
absl::uint128 ContentHash(const void* data, size_t size);

}  // namespace floe
