// DeviceKernel: a kernel of DeviceKind::kCuda. It computes nothing itself: it says which launches
// do, and with which arguments.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/vendor_layer.h"
#include "kernels/kernel.h"

namespace floe::cuda {

// What Emit sees. All data are addresses of the device: they may be computed with, and nothing at
// them is read. The shapes are concrete. `pool` and `allocator` are null.
struct DeviceAddresses : KernelContext {
  absl::Span<const std::byte* const> weights;  // of DeviceKernel::Weights(), in its order

  template <typename T>
  const T* weight(int i) const {
    return reinterpret_cast<const T*>(weights[static_cast<size_t>(i)]);
  }
};

// Threading: as Kernel.
class DeviceKernel : public Kernel {
 public:
  // Appends the launches that compute the node, in order: each sees what those before it wrote.
  // What a launch computes for a row must not depend, to the bit, on how many rows there are.
  // None for outputs without elements.
  virtual void Emit(const DeviceAddresses& addresses, std::vector<Launch>* launches) const = 0;

  // Constants that the kernel has packed for the device. They are uploaded once, each aligned to
  // kAlignment, before the first launch.
  virtual absl::Span<const Tensor> Weights() const { return {}; }

  // The product or convolution that Emit's only launch computes before its epilogue, where that is
  // one of rows with constants, in float32; else none.
  virtual std::optional<VendorLayer> Layer() const { return std::nullopt; }

  // Runs the launches on the emulator, over memory of the host: kernels of kCuda that are run as
  // any other kernel are the emulated device. INTERNAL without the emulator.
  absl::Status Run(const KernelContext& ctx) const final;
  // The same, whatever kernel_runner is.
  absl::Status RunOnEmulator(const KernelContext& ctx) const;

  size_t PackedBytes() const override;
};

// Runs launches in order on the emulator; their addresses are the host's. INTERNAL for a launch
// that its kernel could not have, or that the emulator finds wrong. Programs that do not link the
// emulator have no such function, and `launch_runner` is null in them.
absl::Status Emulate(absl::Span<const Launch> launches);
using LaunchRunner = absl::Status (*)(absl::Span<const Launch> launches);
inline LaunchRunner launch_runner = nullptr;

// What DeviceKernel::Run does instead, for tests; set while no kernel runs. Null: as it says.
using KernelRunner = absl::Status (*)(const DeviceKernel& kernel, const KernelContext& ctx);
inline KernelRunner kernel_runner = nullptr;

// A DeviceKernel of a function of the addresses.
template <typename F>
class EmitKernel : public DeviceKernel {
 public:
  explicit EmitKernel(F emit) : emit_(std::move(emit)) {}
  void Emit(const DeviceAddresses& addresses, std::vector<Launch>* launches) const override {
    emit_(addresses, launches);
  }

 private:
  F emit_;
};
template <typename F>
std::unique_ptr<Kernel> MakeEmitKernel(F emit) {
  return std::make_unique<EmitKernel<F>>(std::move(emit));
}

}  // namespace floe::cuda
