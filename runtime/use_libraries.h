// Layers of an island that libraries of NVIDIA compute.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "kernels/cuda/device/device.h"
#include "runtime/plan.h"

namespace floe {

// Offers each product and each convolution of the island's program to the libraries of the device,
// and puts what they are proven to compute in the place of floe's own kernels: before plans are
// made of the program, and its weights are uploaded. Program::by_library says what became of each.
// Nothing where the device has no libraries. Errors are those of the device.
absl::Status UseLibraries(const std::shared_ptr<cuda::Device>& device, Program* program);

}  // namespace floe
