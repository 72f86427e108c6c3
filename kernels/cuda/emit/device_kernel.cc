#include "kernels/cuda/device_kernel.h"

namespace floe::cuda {

absl::Status DeviceKernel::Run(const KernelContext& ctx) const {
  return kernel_runner == nullptr ? RunOnEmulator(ctx) : kernel_runner(*this, ctx);
}

absl::Status DeviceKernel::RunOnEmulator(const KernelContext& ctx) const {
  if (launch_runner == nullptr)
    return absl::InternalError("a kernel for a GPU was run on the host, without the emulator");
  DeviceAddresses addresses;
  static_cast<KernelContext&>(addresses) = ctx;
  addresses.pool = nullptr;
  addresses.allocator = nullptr;
  std::vector<const std::byte*> weights;
  for (const Tensor& weight : Weights()) weights.push_back(weight.as<std::byte>());
  addresses.weights = weights;
  std::vector<Launch> launches;
  Emit(addresses, &launches);
  return launch_runner(launches);
}

size_t DeviceKernel::PackedBytes() const {
  size_t bytes = 0;
  for (const Tensor& weight : Weights()) bytes += weight.bytes();
  return bytes;
}

}  // namespace floe::cuda
