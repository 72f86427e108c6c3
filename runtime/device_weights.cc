#include "runtime/device_weights.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/content_hash.h"
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

absl::Status DeviceWeights::Add(const Tensor& tensor, WeightStore* store) {
  if (tensor.bytes() == 0 || places_.contains(tensor.data())) return absl::OkStatus();
  std::shared_ptr<const cuda::DeviceBuffer> shared;
  absl::uint128 key = 0;
  if (store != nullptr) {
    const absl::uint128 content = ContentHash(tensor.data(), tensor.bytes());
    const std::string text =
        absl::StrCat(absl::Uint128High64(content), ",", absl::Uint128Low64(content), ",",
                     tensor.bytes(), " on ", device_->name());
    key = ContentHash(text.data(), text.size());
    shared = store->on_devices().Find(key);
  }
  if (shared == nullptr) {
    FLOE_ASSIGN_OR_RETURN(cuda::DeviceBuffer made,
                          cuda::DeviceBuffer::Make(device_, tensor.bytes()));
    FLOE_RETURN_IF_ERROR(made.Upload(0, tensor.data(), tensor.bytes()));
    shared = std::make_shared<const cuda::DeviceBuffer>(std::move(made));
    if (store != nullptr) shared = store->on_devices().Add(key, std::move(shared));
  }
  places_.emplace(tensor.data(), shared->data());
  bytes_ += shared->size();
  buffers_.push_back(std::move(shared));
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const DeviceWeights>> DeviceWeights::Upload(
    const Program& program, std::shared_ptr<cuda::Device> device, WeightStore* store) {
  std::shared_ptr<DeviceWeights> weights(new DeviceWeights());
  weights->device_ = std::move(device);
  for (const Node& node : program.graph.nodes()) {
    const Tensor* const value = node.attrs.Find<Tensor>("value");
    if (node.op->name == "Const" && value != nullptr && DTypeSize(value->dtype()) != 0)
      FLOE_RETURN_IF_ERROR(weights->Add(*value, store));
  }
  for (const auto& kernel : program.kernels) {
    const auto* const on_device = dynamic_cast<const cuda::DeviceKernel*>(kernel.get());
    if (on_device == nullptr) continue;
    for (const Tensor& tensor : on_device->Weights())
      FLOE_RETURN_IF_ERROR(weights->Add(tensor, store));
  }
  return weights;
}

}  // namespace floe
