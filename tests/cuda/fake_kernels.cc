#include "tests/cuda/fake_kernels.h"

#include "kernels/cuda/emulator.h"

namespace floe::cuda {

const KernelEntry* EmulatedKernel(const std::string& symbol) {
  int count = 0;
  const KernelEntry* const entries = floe_cuda_kernels(&count);
  for (int i = 0; i < count; ++i)
    if (symbol == "floe_" + std::string(entries[i].name)) return &entries[i];
  return nullptr;
}

std::string RunEmulated(const KernelEntry& kernel, Dim3 grid, const void* args) {
  return std::string(Emulate(kernel, grid, args).message());
}

}  // namespace floe::cuda
