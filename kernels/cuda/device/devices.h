// Devices: the GPUs that this process uses, opened once, when somebody first asks.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "kernels/cuda/device/device.h"

namespace floe::cuda {

// Threading: any thread.
class Devices {
 public:
  // `limit_of`: a device's gpu_memory_limit in bytes, of the bytes that it has.
  explicit Devices(std::function<int64_t(int64_t total_bytes)> limit_of,
                   VendorChoice libraries = {})
      : limit_of_(std::move(limit_of)), libraries_(std::move(libraries)) {}

  // What is there. It does not change once it is opened.
  struct Opened {
    // Library::Versions(), and those of the libraries that were chosen, or why they are not used;
    // empty without the library.
    std::string versions;
    std::vector<std::shared_ptr<Device>> devices;  // ascending by index
    std::map<int, absl::Status> refused;           // devices that cannot be used, and why
    bool no_library = false;                       // it is not installed, and nobody named one
    absl::Status why_none;                         // OK while there is a device
  };
  // Opens the library and all devices at the first call, for which others wait. That takes seconds
  // where there are devices, and next to nothing where there is no library.
  const Opened& Open();
  // Null: nobody has asked yet, or it is still going on.
  const Opened* opened() const;

  // NOT_FOUND: there is no such device; other errors say why it cannot be used.
  absl::StatusOr<std::shared_ptr<Device>> Find(int index);
  // Of the devices that are not lost, the one with the most free bytes of its limit; of several the
  // first. UNAVAILABLE: all are lost. Otherwise why there is none.
  absl::StatusOr<std::shared_ptr<Device>> FindFreest();

 private:
  Opened OpenAll() const;

  const std::function<int64_t(int64_t total_bytes)> limit_of_;
  const VendorChoice libraries_;
  mutable Mutex mutex_;
  CondVar done_;
  bool begun_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<const Opened> opened_ ABSL_GUARDED_BY(mutex_);
};

// What can still be allocated of the device's limit, or of the device without one.
int64_t FreeBytes(const Device& device);

// "CUDA 13.0, driver 13.1", with a line for each device, or why there is no library, or none. For
// `--version`: opens no device.
std::string DescribeLibrary();

}  // namespace floe::cuda
