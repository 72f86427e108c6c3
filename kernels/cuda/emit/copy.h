// Strided copies on the device: kernels::Grid as launches.
#pragma once

#include <vector>

#include "kernels/cpu/move/grid_copy.h"
#include "kernels/cuda/launch.h"

namespace floe::cuda {

// As kernels::CopyGrid, for at most kMoveDims dims that do not run on. Units are as wide as
// addresses, strides and sizes allow.
void EmitCopy(kernels::Grid grid, int64_t element_bytes, const void* from, void* to,
              std::vector<Launch>* launches);

// `bytes` from one place to another.
void EmitBytes(const void* from, void* to, int64_t bytes, std::vector<Launch>* launches);

// The value of `element_bytes` at `value`, an address of the device, to each of `count` elements.
void EmitFill(const void* value, int64_t element_bytes, void* to, int64_t count,
              std::vector<Launch>* launches);
// The same for a value of the host.
void EmitFillOf(const void* host_value, int64_t element_bytes, void* to, int64_t count,
                std::vector<Launch>* launches);

}  // namespace floe::cuda
