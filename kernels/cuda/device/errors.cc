#include "kernels/cuda/device/errors.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace floe::cuda {
namespace {

// After these, says CUDA's documentation, the process must be ended and started again.
constexpr int kFatal[] = {
    214,  // uncorrectable error of the memory
    220,  // the same of NVLink
    226,  // an error that the device contained
    kCudaIllegalAddress,
    702,  // a launch ran into the time limit
    709,  // the context is destroyed
    710,  // an assertion of device code
    714,  // error of the hardware's stack
    715,  // illegal instruction
    716,  // misaligned address
    717,  // invalid address space
    718,  // invalid program counter
    kCudaLaunchFailure,
    721,  // leak of tensor memory
    806,
    810,  // MPS: its server failed, or ended the client
    911,  // an external device failed
};

// The driver that CUDA 13.0 needs, as nvidia-smi shows it.
constexpr char kDriverNeeded[] = "R580 (580.65.06) or newer";

}  // namespace

bool IsFatal(int error) {
  return std::find(std::begin(kFatal), std::end(kFatal), error) != std::end(kFatal);
}

absl::Status CallError(const FloeCudaLibrary& calls, int error, const std::string& what) {
  const std::string text = absl::StrCat(what, ": ", calls.error_name(error), " (",
                                        calls.error_text(error), ", CUDA error ", error, ")");
  if (IsFatal(error)) return absl::UnavailableError(text);
  if (error == kCudaOutOfMemory) return absl::ResourceExhaustedError(text);
  return absl::InternalError(text);
}

std::string CudaVersionText(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

absl::Status StartError(const FloeCudaLibrary& calls, int error, int driver, int runtime) {
  switch (error) {
    case kCudaInsufficientDriver:
      if (driver == 0)
        return absl::FailedPreconditionError(absl::StrCat(
            "there is no NVIDIA driver (no libcuda.so.1): install driver ", kDriverNeeded,
            "; in a container, start it with the GPUs (docker run --gpus all)"));
      return absl::FailedPreconditionError(absl::StrCat(
          "the NVIDIA driver is too old: it supports CUDA ", CudaVersionText(driver),
          " and floe needs ", CudaVersionText(runtime), ": install driver ", kDriverNeeded));
    case kCudaStubLibrary:
      return absl::FailedPreconditionError(
          "libcuda.so.1 is the CUDA toolkit's stub, and not a driver: take the folder "
          "lib64/stubs out of LD_LIBRARY_PATH");
    case kCudaNoDevice:
      return absl::NotFoundError(
          "the NVIDIA driver finds no device: see nvidia-smi, CUDA_VISIBLE_DEVICES, and whether "
          "this user may open /dev/nvidia*");
    case kCudaSystemNotReady:
      return absl::FailedPreconditionError(
          "the devices are not ready: start nvidia-fabricmanager (systems with NVSwitch need it)");
    case kCudaDriverMismatch:
      return absl::FailedPreconditionError(
          "libcuda.so.1 and the kernel's NVIDIA module have different versions: reboot, or load "
          "the module again");
    default:
      return absl::FailedPreconditionError(
          std::string(CallError(calls, error, "the NVIDIA driver does not start").message()));
  }
}

}  // namespace floe::cuda
