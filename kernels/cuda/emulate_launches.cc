// Launches on the emulator: what kernels for GPUs do in programs that link this.
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/cuda/device_kernel.h"
#include "kernels/cuda/emulator.h"

namespace floe::cuda {
namespace {

absl::Status EmulateLaunch(const Launch& launch) {
  if (launch.call != nullptr) return absl::InternalError("the emulator has no vendor's library");
  int count = 0;
  const KernelEntry* const kernels = floe_cuda_kernels(&count);
  const int number = static_cast<int>(launch.kernel);
  if (number < 0 || number >= count)
    return absl::InternalError(absl::StrCat("there is no kernel ", number));
  const KernelEntry& kernel = kernels[number];
  if (kernel.args_bytes != static_cast<int>(launch.args_bytes)) {
    return absl::InternalError(absl::StrCat(kernel.name, " takes ", kernel.args_bytes,
                                            " bytes of arguments, the launch has ",
                                            launch.args_bytes));
  }
  constexpr uint32_t kMostX = 0x7fffffff, kMostYZ = 65535;  // CUDA's limits of a grid
  const Dim3& grid = launch.grid;
  if (grid.x - 1 >= kMostX || grid.y - 1 >= kMostYZ || grid.z - 1 >= kMostYZ) {
    return absl::InternalError(absl::StrCat(kernel.name, " cannot have a grid of ", grid.x, " x ",
                                            grid.y, " x ", grid.z, " blocks"));
  }
  return Emulate(kernel, grid, launch.args);
}

const bool kLinked = [] {
  launch_runner = &Emulate;
  return true;
}();

}  // namespace

absl::Status Emulate(absl::Span<const Launch> launches) {
  for (const Launch& launch : launches) FLOE_RETURN_IF_ERROR(EmulateLaunch(launch));
  return absl::OkStatus();
}

}  // namespace floe::cuda
