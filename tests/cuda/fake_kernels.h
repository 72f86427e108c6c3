// The emulated kernels for fake_cudart.cc, which has CUDA's own headers: the emulator's define the
// same names.
#pragma once

#include <string>

#include "kernels/cuda/kernel_list.h"

namespace floe::cuda {

// By the symbol under which nvcc's code registers it; null: there is no such kernel.
const KernelEntry* EmulatedKernel(const std::string& symbol);
// Empty, or what was wrong.
std::string RunEmulated(const KernelEntry& kernel, Dim3 grid, const void* args);

}  // namespace floe::cuda
