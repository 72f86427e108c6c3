#include "tests/cuda/kernel_on_device.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/cuda/device/device_run.h"

namespace floe::cuda {
namespace {

// Memory of the host and its counterpart on the device. What overlaps on the host, an output in
// the place of an input, does so there.
class Mirror {
 public:
  void Add(const std::byte* memory, size_t bytes) {
    if (memory == nullptr || bytes == 0) return;
    Range added = {memory, memory + bytes, {}};
    std::vector<Range> apart;
    for (Range& range : ranges_) {
      if (range.end <= added.begin || added.end <= range.begin) {
        apart.push_back(std::move(range));
      } else {
        added.begin = std::min(added.begin, range.begin);
        added.end = std::max(added.end, range.end);
      }
    }
    apart.push_back(std::move(added));
    ranges_ = std::move(apart);
  }

  // As far from an aligned address as on the host: kernels may read 16 bytes at a time.
  absl::Status Upload(const std::shared_ptr<Device>& device) {
    for (Range& range : ranges_) {
      const size_t bytes = static_cast<size_t>(range.end - range.begin);
      FLOE_ASSIGN_OR_RETURN(range.copy, DeviceBuffer::Make(device, Offset(range) + bytes));
      FLOE_RETURN_IF_ERROR(range.copy.Upload(Offset(range), range.begin, bytes));
    }
    return absl::OkStatus();
  }

  std::byte* OnDevice(const void* host) const {
    for (const Range& range : ranges_)
      if (range.begin <= host && host < range.end)
        return range.copy.data() + Offset(range) +
               (static_cast<const std::byte*>(host) - range.begin);
    return nullptr;
  }

  absl::Status Download(const void* host, void* to, size_t bytes) const {
    for (const Range& range : ranges_)
      if (range.begin <= host && host < range.end)
        return range.copy.Download(
            Offset(range) + static_cast<size_t>(static_cast<const std::byte*>(host) - range.begin),
            to, bytes);
    return absl::InternalError("memory without a counterpart");
  }

 private:
  struct Range {
    const std::byte* begin;
    const std::byte* end;
    DeviceBuffer copy;
  };
  static size_t Offset(const Range& range) {
    return reinterpret_cast<uintptr_t>(range.begin) % kAlignment;
  }
  std::vector<Range> ranges_;
};

// Bytes from the first to behind the last element of a view whose lines may lie apart.
size_t Extent(const TensorView& view, int64_t line_stride) {
  if (view.elements() == 0) return 0;
  const int rank = view.shape.rank();
  if (rank == 0) return view.bytes();
  const int64_t line = view.shape.dim(rank - 1), lines = view.elements() / line;
  return static_cast<size_t>((lines - 1) * line_stride + line) * DTypeSize(view.dtype);
}
int64_t InStride(const KernelContext& ctx, size_t i) {
  return ctx.inputs[i].shape.rank() == 0 ? 1 : ctx.InLineStride(static_cast<int>(i));
}
int64_t OutStride(const KernelContext& ctx, size_t i) {
  return ctx.outputs[i].shape.rank() == 0 ? 1 : ctx.OutLineStride(static_cast<int>(i));
}

std::vector<Shape> Shapes(absl::Span<const TensorView> views) {
  std::vector<Shape> shapes;
  for (const TensorView& view : views) shapes.push_back(view.shape);
  return shapes;
}

// Equal bits, or both NaN: which of its bits are set, IEEE 754 leaves open. `near`: of sums that
// tensor cores make in an order of their own.
bool Same(DType dtype, bool near, const std::byte* a, const std::byte* b) {
  if (std::memcmp(a, b, DTypeSize(dtype)) == 0) return true;
  if (dtype != DType::kFloat32) return false;
  float x = 0, y = 0;
  std::memcpy(&x, a, sizeof x);
  std::memcpy(&y, b, sizeof y);
  if (near && std::abs(x - y) <= 1e-4f * std::max(1.0f, std::abs(x))) return true;
  return std::isnan(x) && std::isnan(y);
}

// One kernel's memory on the device, from its inputs to its outputs.
class Comparison {
 public:
  Comparison(const std::shared_ptr<Device>& device, const DeviceKernel& kernel,
             const KernelContext& ctx)
      : device_(device), kernel_(kernel), ctx_(ctx) {}

  // Before the emulator overwrites inputs.
  absl::Status Upload() {
    for (size_t i = 0; i < ctx_.inputs.size(); ++i)
      memory_.Add(ctx_.inputs[i].as<std::byte>(), Extent(ctx_.inputs[i], InStride(ctx_, i)));
    for (size_t i = 0; i < ctx_.outputs.size(); ++i)
      memory_.Add(ctx_.outputs[i].as<std::byte>(), Extent(ctx_.outputs[i], OutStride(ctx_, i)));
    for (const Tensor& weight : kernel_.Weights())
      memory_.Add(weight.as<std::byte>(), weight.bytes());
    FLOE_RETURN_IF_ERROR(memory_.Upload(device_));
    const int64_t bytes = kernel_.ScratchBytes(Shapes(ctx_.inputs), Shapes(ctx_.outputs));
    FLOE_ASSIGN_OR_RETURN(scratch_, DeviceBuffer::Make(device_, static_cast<size_t>(bytes)));
    return absl::OkStatus();
  }

  absl::Status Run() {
    std::vector<TensorView> inputs(ctx_.inputs.begin(), ctx_.inputs.end());
    std::vector<TensorView> outputs(ctx_.outputs.begin(), ctx_.outputs.end());
    for (auto* views : {&inputs, &outputs})
      for (TensorView& view : *views) view.data = memory_.OnDevice(view.data);
    std::vector<const std::byte*> weights;
    for (const Tensor& weight : kernel_.Weights())
      weights.push_back(memory_.OnDevice(weight.data()));
    DeviceAddresses addresses;
    static_cast<KernelContext&>(addresses) = ctx_;
    addresses.inputs = inputs;
    addresses.outputs = outputs;
    addresses.scratch = scratch_.data();
    addresses.pool = nullptr;
    addresses.allocator = nullptr;
    addresses.weights = weights;
    std::vector<Launch> launches;
    kernel_.Emit(addresses, &launches);
    near_ = std::any_of(launches.begin(), launches.end(),
                        [](const Launch& launch) { return NeedsTensorCores(launch.kernel); });
    FLOE_ASSIGN_OR_RETURN(const Stream stream, Stream::Make(device_));
    FLOE_ASSIGN_OR_RETURN(const auto run, DeviceRun::Make(stream, {"a kernel", launches, {}, {}}));
    return run->Run(stream);
  }

  // With what the emulator wrote.
  absl::Status Compare() const {
    for (size_t i = 0; i < ctx_.outputs.size(); ++i) FLOE_RETURN_IF_ERROR(CompareOutput(i));
    return absl::OkStatus();
  }

 private:
  absl::Status CompareOutput(size_t i) const {
    const TensorView& view = ctx_.outputs[i];
    if (view.elements() == 0) return absl::OkStatus();
    const int64_t stride = OutStride(ctx_, i);
    std::vector<std::byte> theirs(Extent(view, stride));
    FLOE_RETURN_IF_ERROR(memory_.Download(view.data, theirs.data(), theirs.size()));
    const int rank = view.shape.rank();
    const int64_t line = rank == 0 ? 1 : view.shape.dim(rank - 1);
    const size_t size = DTypeSize(view.dtype);
    int64_t differing = 0, first = 0;
    for (int64_t e = 0; e < view.elements(); ++e) {
      const size_t at = static_cast<size_t>(e / line * stride + e % line) * size;
      if (Same(view.dtype, near_, view.as<std::byte>() + at, theirs.data() + at)) continue;
      if (++differing == 1) first = e;
    }
    if (differing == 0) return absl::OkStatus();
    return absl::InternalError(
        absl::StrCat(device_->name(), " has other bits than the emulator: ", differing, " of ",
                     view.elements(), " elements of output ", i, ", the first is ", first));
  }

  const std::shared_ptr<Device>& device_;
  const DeviceKernel& kernel_;
  const KernelContext& ctx_;
  Mirror memory_;
  DeviceBuffer scratch_;
  bool near_ = false;
};

std::shared_ptr<Device>& ComparedDevice() {
  static auto* const device = new std::shared_ptr<Device>;
  return *device;
}
std::atomic<int64_t> compared{0};

absl::Status CompareOnTheDevice(const DeviceKernel& kernel, const KernelContext& ctx) {
  ++compared;
  return CompareOnDevice(ComparedDevice(), kernel, ctx);
}

}  // namespace

absl::Status CompareOnDevice(const std::shared_ptr<Device>& device, const DeviceKernel& kernel,
                             const KernelContext& ctx) {
  Comparison comparison(device, kernel, ctx);
  FLOE_RETURN_IF_ERROR(comparison.Upload());
  FLOE_RETURN_IF_ERROR(kernel.RunOnEmulator(ctx));
  FLOE_RETURN_IF_ERROR(comparison.Run());
  return comparison.Compare();
}

void CompareAllOnDevice(std::shared_ptr<Device> device) {
  kernel_runner = device == nullptr ? nullptr : CompareOnTheDevice;
  ComparedDevice() = std::move(device);
  compared = 0;
}

int64_t ComparedOnDevice() { return compared; }

}  // namespace floe::cuda
