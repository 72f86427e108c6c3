// Memory of packed weights.
#pragma once

#include "base/aligned_buffer.h"

namespace floe::kernels {

// Uninitialised memory that is about to be written whole. Where it is large, the system is asked
// for huge pages, which are there in a fraction of the time and easier to find when it is read.
AlignedBuffer PackedMemory(size_t bytes);

}  // namespace floe::kernels
