// DeviceWeights: the constants of an island's program on its device, uploaded once and shared by
// all who run it.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/cuda/device/device.h"
#include "runtime/plan.h"

namespace floe {

// Threading: immutable, any thread.
class DeviceWeights {
 public:
  // Of the program's Const nodes that still have a value, and what its kernels have packed.
  // RESOURCE_EXHAUSTED when the device has no room.
  // `store`: where equal ones of others are found; null: nowhere.
  static absl::StatusOr<std::shared_ptr<const DeviceWeights>> Upload(
      const Program& program, std::shared_ptr<cuda::Device> device, WeightStore* store);

  const std::shared_ptr<cuda::Device>& device() const { return device_; }
  size_t bytes() const { return bytes_; }
  // Where the bytes of the program's tensor are; null: it is none of them.
  std::byte* Find(const void* on_host) const {
    const auto found = places_.find(on_host);
    return found == places_.end() ? nullptr : found->second;
  }

 private:
  DeviceWeights() = default;
  absl::Status Add(const Tensor& tensor, WeightStore* store);
  std::shared_ptr<cuda::Device> device_;
  std::vector<std::shared_ptr<const cuda::DeviceBuffer>> buffers_;
  size_t bytes_ = 0;
  std::map<const void*, std::byte*> places_;
};

// Uploads each tensor once, aligned, and says in `places` where the bytes of each are. Without
// bytes there is no buffer.
absl::StatusOr<cuda::DeviceBuffer> UploadTensors(const std::shared_ptr<cuda::Device>& device,
                                                 absl::Span<const Tensor> tensors,
                                                 std::map<const void*, std::byte*>* places);

}  // namespace floe
