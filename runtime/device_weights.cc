#include "runtime/device_weights.h"

#include <utility>

#include "base/status.h"
#include "kernels/cuda/device_kernel.h"

namespace floe {

absl::StatusOr<cuda::DeviceBuffer> UploadTensors(const std::shared_ptr<cuda::Device>& device,
                                                 absl::Span<const Tensor> tensors,
                                                 std::map<const void*, std::byte*>* places) {
  std::map<const void*, size_t> offsets;
  size_t bytes = 0;
  for (const Tensor& tensor : tensors) {
    if (tensor.bytes() == 0 || !offsets.emplace(tensor.data(), bytes).second) continue;
    bytes += AlignUp(tensor.bytes());
  }
  if (bytes == 0) return cuda::DeviceBuffer();
  FLOE_ASSIGN_OR_RETURN(cuda::DeviceBuffer buffer, cuda::DeviceBuffer::Make(device, bytes));
  for (const Tensor& tensor : tensors) {
    const auto found = offsets.find(tensor.data());
    if (found == offsets.end() || places->contains(tensor.data())) continue;
    FLOE_RETURN_IF_ERROR(buffer.Upload(found->second, tensor.data(), tensor.bytes()));
    places->emplace(tensor.data(), buffer.data() + found->second);
  }
  return buffer;
}

absl::StatusOr<std::shared_ptr<const DeviceWeights>> DeviceWeights::Upload(
    const Program& program, std::shared_ptr<cuda::Device> device) {
  std::shared_ptr<DeviceWeights> weights(new DeviceWeights());
  std::vector<Tensor> tensors;
  for (const Node& node : program.graph.nodes()) {
    const Tensor* const value = node.attrs.Find<Tensor>("value");
    if (node.op->name == "Const" && value != nullptr && DTypeSize(value->dtype()) != 0)
      tensors.push_back(*value);
  }
  for (const auto& kernel : program.kernels) {
    if (const auto* on_device = dynamic_cast<const cuda::DeviceKernel*>(kernel.get()))
      tensors.insert(tensors.end(), on_device->Weights().begin(), on_device->Weights().end());
  }
  FLOE_ASSIGN_OR_RETURN(weights->buffer_, UploadTensors(device, tensors, &weights->places_));
  weights->device_ = std::move(device);
  return weights;
}

}  // namespace floe
