// Runs every DeviceKernel on a device too, and compares its bits with the emulator's: what op cases
// and models need to be checks of a GPU.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "kernels/cuda/device/device.h"
#include "kernels/cuda/device_kernel.h"

namespace floe::cuda {

// Computes the node on the emulator and on the device, and leaves the emulator's outputs. INTERNAL
// says which elements of which output differ; NaN equals NaN.
absl::Status CompareOnDevice(const std::shared_ptr<Device>& device, const DeviceKernel& kernel,
                             const KernelContext& ctx);

// From now on CompareOnDevice is what DeviceKernel::Run does; null: the emulator alone. Not while
// kernels run.
void CompareAllOnDevice(std::shared_ptr<Device> device);
// How many kernels were compared since.
int64_t ComparedOnDevice();

}  // namespace floe::cuda
