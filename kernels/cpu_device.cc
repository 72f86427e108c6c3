#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/aligned_buffer.h"
#include "kernels/cpu/isa.h"
#include "kernels/device.h"

namespace floe {
namespace {

class HostMemory : public DeviceMemory {
 public:
  explicit HostMemory(size_t bytes) : buffer_(bytes) {}
  std::byte* data() const override { return buffer_.data(); }
  size_t size() const override { return buffer_.size(); }

 private:
  AlignedBuffer buffer_;
};

class ImmediateStream : public Stream {
 public:
  absl::Status Synchronize() override { return absl::OkStatus(); }
};

class Cpu : public Device {
 public:
  DeviceKind kind() const override { return DeviceKind::kCpu; }
  std::string name() const override { return absl::StrCat("cpu (", kernels::IsaName(), ")"); }
  absl::StatusOr<std::unique_ptr<DeviceMemory>> Allocate(size_t bytes) override {
    try {
      return std::make_unique<HostMemory>(bytes);
    } catch (const std::bad_alloc&) {
      return absl::ResourceExhaustedError(absl::StrCat("cannot allocate ", bytes, " bytes"));
    }
  }
  absl::StatusOr<std::unique_ptr<Stream>> NewStream() override {
    return std::make_unique<ImmediateStream>();
  }
  absl::Status Copy(void* to, const void* from, size_t bytes, CopyDirection, Stream&) override {
    if (bytes != 0) std::memcpy(to, from, bytes);
    return absl::OkStatus();
  }
  KernelFactory FindKernel(const std::string& op, DType dtype) const override {
    return ::floe::FindKernel(op, DeviceKind::kCpu, dtype);
  }
};

}  // namespace

Device& CpuDevice() {
  static Cpu cpu;
  return cpu;
}

}  // namespace floe
