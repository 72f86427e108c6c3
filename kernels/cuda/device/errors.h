// Errors of CUDA calls as statuses that say what is wrong and the way out.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "kernels/cuda/library.h"

namespace floe::cuda {

// The numbers of cudaError_t that are told apart here; CUDA never changes them.
enum CudaError : int {
  kCudaOutOfMemory = 2,
  kCudaStubLibrary = 34,
  kCudaInsufficientDriver = 35,
  kCudaDeviceUnavailable = 46,
  kCudaInvalidDeviceFunction = 98,
  kCudaNoDevice = 100,
  kCudaInvalidDevice = 101,
  kCudaNoKernelImage = 209,
  kCudaIllegalAddress = 700,
  kCudaLaunchFailure = 719,
  kCudaSystemNotReady = 802,
  kCudaDriverMismatch = 803,
  kCudaUnknown = 999,
};

// Whether nothing that this process does on the device can succeed after the error.
bool IsFatal(int error);

// "WHAT: cudaErrorLaunchFailure (unspecified launch failure)". UNAVAILABLE where IsFatal,
// RESOURCE_EXHAUSTED for memory, else INTERNAL.
absl::Status CallError(const FloeCudaLibrary& calls, int error, const std::string& what);

// Why there is no device to use: of what the library says about versions or devices. Versions as
// CUDA writes them; `driver` is 0 without a driver. FAILED_PRECONDITION, or NOT_FOUND.
absl::Status StartError(const FloeCudaLibrary& calls, int error, int driver, int runtime);

// "13.0" of 13000.
std::string CudaVersionText(int version);

}  // namespace floe::cuda
