// A kernel whose product or convolution a library computes; what is left of it is floe's own.
#pragma once

#include <memory>
#include <string>

#include "kernels/cuda/device_kernel.h"

namespace floe::cuda {

struct LibraryRoutine {
  std::string name;  // of the route: "cublaslt"
  std::shared_ptr<const VendorCall> call;
  int64_t most_rows = 0;         // of a call; it is made for powers of two up to this
  uint64_t workspace_bytes = 0;  // of all calls
};

// `own` has DeviceKernel::Layer(), which `routine` computes.
std::shared_ptr<const Kernel> ByLibrary(std::shared_ptr<const Kernel> own, LibraryRoutine routine);

}  // namespace floe::cuda
