// Device: the seam between the runtime and where kernels run. CPU is built in; a shared library may
// add more by registering kernels and a Device before the first model is loaded.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/kernel.h"

namespace floe {

// An ordered queue of work on a device. The CPU's runs everything at once.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual absl::Status Synchronize() = 0;
};

// Memory of one device; freed with the object.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  virtual std::byte* data() const = 0;
  virtual size_t size() const = 0;
};

enum class CopyDirection : uint8_t { kHostToDevice, kDeviceToHost, kDeviceToDevice };

// Threading: any thread; a Stream belongs to one ExecContext.
class Device {
 public:
  virtual ~Device() = default;
  virtual DeviceKind kind() const = 0;
  virtual std::string name() const = 0;  // "cpu (avx512)"
  // RESOURCE_EXHAUSTED when there is not enough.
  virtual absl::StatusOr<std::unique_ptr<DeviceMemory>> Allocate(size_t bytes) = 0;
  virtual absl::StatusOr<std::unique_ptr<Stream>> NewStream() = 0;
  virtual absl::Status Copy(void* to, const void* from, size_t bytes, CopyDirection direction,
                            Stream& stream) = 0;
  // Null when this device has no kernel for the op and dtype.
  virtual KernelFactory FindKernel(const std::string& op, DType dtype) const = 0;
};

Device& CpuDevice();  // lives as long as the process

}  // namespace floe
