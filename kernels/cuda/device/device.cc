#include "kernels/cuda/device/device.h"

#include "absl/strings/str_cat.h"
#include "base/byte_size.h"
#include "base/status.h"
#include "kernels/cuda/device/errors.h"
#include "kernels/cuda/device/vendor_libraries.h"

namespace floe::cuda {
namespace {

// The lowest that CUDA 13 compiles for.
constexpr int kLowestMajor = 7, kLowestMinor = 5;

std::string Human(uint64_t bytes) { return HumanBytes(static_cast<double>(bytes)); }

}  // namespace

Device::Device(std::shared_ptr<const Library> library, int index, int64_t memory_limit_bytes)
    : library_(std::move(library)),
      index_(index),
      name_(absl::StrCat("cuda:", index)),
      budget_(name_, memory_limit_bytes) {}

absl::StatusOr<std::shared_ptr<Device>> Device::Open(std::shared_ptr<const Library> library,
                                                     int index, int64_t memory_limit_bytes,
                                                     const VendorChoice& libraries) {
  FLOE_ASSIGN_OR_RETURN(const int count, library->CountDevices());
  if (index < 0 || index >= count)
    return absl::NotFoundError(
        absl::StrCat("there is no device cuda:", index, ": the driver finds ", count,
                     count == 1 ? " device, cuda:0" : " devices, from cuda:0",
                     "; CUDA_VISIBLE_DEVICES may hide others"));
  std::shared_ptr<Device> device(new Device(std::move(library), index, memory_limit_bytes));
  FLOE_RETURN_IF_ERROR(device->Start(libraries));
  return device;
}

Device::~Device() = default;

absl::Status Device::Start(const VendorChoice& libraries) {
  FLOE_RETURN_IF_ERROR(
      Check(calls().device_properties(index_, &properties_), "reading its properties"));
  if (std::pair(properties_.major, properties_.minor) < std::pair(kLowestMajor, kLowestMinor))
    return absl::FailedPreconditionError(absl::StrCat(
        name_, " (", properties_.name, ") has compute capability ", properties_.major, ".",
        properties_.minor, ", and floe needs ", kLowestMajor, ".", kLowestMinor, " or more"));
  FLOE_RETURN_IF_ERROR(LoadKernels());
  if (!libraries.cublaslt && !libraries.cudnn) return absl::OkStatus();
  FLOE_RETURN_IF_ERROR(MakeCurrent());
  libraries_ = std::make_unique<VendorLibraries>(libraries);
  return absl::OkStatus();
}

absl::Status Device::MakeCurrent() {
  return Check(calls().use_device(index_), "making it the thread's");
}

absl::Status Device::CheckCanRun(KernelId kernel) const {
  constexpr int kTensorMajor = 8;
  if (!NeedsTensorCores(kernel) || properties_.major >= kTensorMajor) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(name_, " (", properties_.name, ") has compute capability ", properties_.major,
                   ".", properties_.minor, ", and precision tf32 and bf16 need ", kTensorMajor,
                   ".0 or more there: set precision: float32, or device: cpu"));
}

absl::Status Device::LoadKernels() {
  const absl::Span<const FloeCudaKernel> kernels = ListedKernels();
  for (uint32_t i = 0; i < kernels.size(); ++i) {
    FloeCudaKernelCode code = {};
    const int error = calls().load_kernel(index_, i, &code);
    if (error == kCudaDeviceUnavailable)
      return absl::FailedPreconditionError(
          absl::StrCat(name_,
                       " is in use by another process that has it for itself: end that, or set its "
                       "compute mode to Default (nvidia-smi -c 0)"));
    if (error == kCudaNoKernelImage || error == kCudaInvalidDeviceFunction)
      return absl::FailedPreconditionError(
          absl::StrCat(library_->path(), " has no code for ", name_, " (", properties_.name,
                       ", compute capability ", properties_.major, ".", properties_.minor, ")"));
    FLOE_RETURN_IF_ERROR(Check(error, absl::StrCat("loading the kernel ", kernels[i].name)));
    if (code.most_threads < kernels[i].threads)
      return absl::InternalError(absl::StrCat(name_, ": the kernel ", kernels[i].name, " needs ",
                                              kernels[i].threads, " threads, and can have ",
                                              code.most_threads));
  }
  return absl::OkStatus();
}

absl::Status Device::Check(int error, const std::string& what) {
  if (error == 0) return absl::OkStatus();
  const absl::Status status = CallError(calls(), error, absl::StrCat(name_, ": ", what));
  return IsFatal(error) ? Lose(status) : status;
}

absl::Status Device::CheckWait(int error, const std::string& what) {
  if (error == 0) return absl::OkStatus();
  return Lose(CallError(calls(), error, absl::StrCat(name_, ": ", what)));
}

absl::Status Device::Lose(const absl::Status& why) {
  MutexLock lock(mutex_);
  if (why_lost_.empty()) {
    why_lost_ = absl::StrCat(
        "the device is lost and needs a restart of the process: ", std::string(why.message()),
        "; the system's log has the driver's reason (dmesg | grep Xid)");
    lost_.store(true, std::memory_order_release);
  }
  return absl::UnavailableError(why_lost_);
}

absl::Status Device::CheckAlive() const {
  if (!lost_.load(std::memory_order_acquire)) return absl::OkStatus();
  MutexLock lock(mutex_);
  return absl::UnavailableError(why_lost_);
}

absl::StatusOr<DeviceBuffer> DeviceBuffer::Make(std::shared_ptr<Device> device, size_t bytes) {
  DeviceBuffer made;
  if (bytes == 0) return made;
  FLOE_RETURN_IF_ERROR(device->CheckAlive());
  FLOE_ASSIGN_OR_RETURN(made.share_, device->budget().Take(static_cast<int64_t>(bytes)));
  void* memory = nullptr;
  const int error = device->calls().allocate(device->index(), bytes, &memory);
  if (error == kCudaOutOfMemory) {
    uint64_t free = 0, total = 0;
    const bool known = device->calls().memory(device->index(), &free, &total) == 0;
    return absl::ResourceExhaustedError(absl::StrCat(
        device->name(), " (", device->properties().name, ") is out of memory: ", Human(bytes),
        " were asked for",
        known ? absl::StrCat(", ", Human(free), " of ", Human(total), " are free") : "",
        ": serve fewer models there, lower max_batch_size, or use another device"));
  }
  FLOE_RETURN_IF_ERROR(device->Check(error, absl::StrCat("allocating ", Human(bytes))));
  made.data_ = static_cast<std::byte*>(memory);
  made.bytes_ = bytes;
  made.device_ = std::move(device);
  return made;
}

DeviceBuffer::~DeviceBuffer() {
  if (data_ != nullptr) (void)device_->calls().release(data_);
}

void DeviceBuffer::Swap(DeviceBuffer& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(share_, other.share_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
}

absl::Status DeviceBuffer::CheckRange(size_t offset, size_t bytes) const {
  if (offset <= bytes_ && bytes <= bytes_ - offset) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("bytes ", offset, " to ", offset + bytes, " of a device buffer of ", bytes_));
}

absl::Status DeviceBuffer::Upload(size_t offset, const void* from, size_t bytes) {
  FLOE_RETURN_IF_ERROR(CheckRange(offset, bytes));
  if (bytes == 0) return absl::OkStatus();
  FLOE_RETURN_IF_ERROR(device_->CheckAlive());
  return device_->Check(
      device_->calls().copy_to_device(device_->index(), data_ + offset, from, bytes),
      absl::StrCat("copying ", Human(bytes), " to the device"));
}

absl::Status DeviceBuffer::Download(size_t offset, void* to, size_t bytes) const {
  FLOE_RETURN_IF_ERROR(CheckRange(offset, bytes));
  if (bytes == 0) return absl::OkStatus();
  FLOE_RETURN_IF_ERROR(device_->CheckAlive());
  return device_->Check(device_->calls().copy_to_host(device_->index(), to, data_ + offset, bytes),
                        absl::StrCat("copying ", Human(bytes), " from the device"));
}

absl::StatusOr<PinnedBuffer> PinnedBuffer::Make(std::shared_ptr<Device> device, size_t bytes) {
  PinnedBuffer made;
  if (bytes == 0) return made;
  FLOE_RETURN_IF_ERROR(device->CheckAlive());
  FLOE_ASSIGN_OR_RETURN(made.share_, TakeMemory(static_cast<int64_t>(bytes)));
  void* memory = nullptr;
  const int error = device->calls().allocate_pinned(device->index(), bytes, &memory);
  if (error == kCudaOutOfMemory)
    return absl::ResourceExhaustedError(
        absl::StrCat("the host has no ", Human(bytes), " of pinned memory for ", device->name(),
                     ": see the limits of locked memory (ulimit -l) and of the container"));
  FLOE_RETURN_IF_ERROR(device->Check(error, absl::StrCat("pinning ", Human(bytes))));
  made.data_ = static_cast<std::byte*>(memory);
  made.bytes_ = bytes;
  made.device_ = std::move(device);
  return made;
}

PinnedBuffer::~PinnedBuffer() {
  if (data_ != nullptr) (void)device_->calls().release_pinned(data_);
}

void PinnedBuffer::Swap(PinnedBuffer& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(share_, other.share_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
}

absl::StatusOr<Stream> Stream::Make(std::shared_ptr<Device> device) {
  FLOE_RETURN_IF_ERROR(device->CheckAlive());
  Stream made;
  FLOE_RETURN_IF_ERROR(device->Check(device->calls().create_stream(device->index(), &made.handle_),
                                     "making a stream"));
  made.device_ = std::move(device);
  return made;
}

Stream::~Stream() {
  if (device_ != nullptr) (void)device_->calls().destroy_stream(handle_);
}

void Stream::Swap(Stream& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(handle_, other.handle_);
}

absl::Status Stream::Wait(const std::string& what) const {
  return device_->CheckWait(device_->calls().wait(handle_), what);
}

}  // namespace floe::cuda
