#include "kernels/cuda/device_kernel.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/cuda/emulator.h"

namespace floe::cuda {

absl::Status DeviceKernel::Run(const KernelContext& ctx) const {
  DeviceAddresses addresses;
  static_cast<KernelContext&>(addresses) = ctx;
  addresses.pool = nullptr;
  addresses.allocator = nullptr;
  std::vector<const std::byte*> weights;
  for (const Tensor& weight : Weights()) weights.push_back(weight.as<std::byte>());
  addresses.weights = weights;
  std::vector<Launch> launches;
  Emit(addresses, &launches);
  return Emulate(launches);
}

size_t DeviceKernel::PackedBytes() const {
  size_t bytes = 0;
  for (const Tensor& weight : Weights()) bytes += weight.bytes();
  return bytes;
}

absl::Status Emulate(absl::Span<const Launch> launches) {
  int count = 0;
  const KernelEntry* const kernels = floe_cuda_kernels(&count);
  for (const Launch& launch : launches) {
    const int number = static_cast<int>(launch.kernel);
    if (number < 0 || number >= count)
      return absl::InternalError(absl::StrCat("there is no kernel ", number));
    const KernelEntry& kernel = kernels[number];
    if (kernel.args_bytes != static_cast<int>(launch.args_bytes)) {
      return absl::InternalError(absl::StrCat(kernel.name, " takes ", kernel.args_bytes,
                                              " bytes of arguments, the launch has ",
                                              launch.args_bytes));
    }
    // CUDA's limits of a grid.
    constexpr uint32_t kMostX = 0x7fffffff, kMostYZ = 65535;
    const Dim3& grid = launch.grid;
    if (grid.x - 1 >= kMostX || grid.y - 1 >= kMostYZ || grid.z - 1 >= kMostYZ) {
      return absl::InternalError(absl::StrCat(kernel.name, " cannot have a grid of ", grid.x, " x ",
                                              grid.y, " x ", grid.z, " blocks"));
    }
    FLOE_RETURN_IF_ERROR(Emulate(kernel, grid, launch.args));
  }
  return absl::OkStatus();
}

}  // namespace floe::cuda
