// Device: one GPU as this process uses it, with its memory and streams. Whatever belongs to a
// device keeps it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/memory_budget.h"
#include "base/mutex.h"
#include "kernels/cuda/device/device_budget.h"
#include "kernels/cuda/device/device_gate.h"
#include "kernels/cuda/device/open_library.h"
#include "kernels/cuda/device/vendor_choice.h"
#include "kernels/cuda/kernel_list.h"

namespace floe::cuda {

class VendorLibraries;

// Threading: any thread.
class Device {
 public:
  // Loads all kernels on the device, so that nothing is left for the first run.
  // `memory_limit_bytes`: gpu_memory_limit; 0: none. NOT_FOUND: there is no such device.
  static absl::StatusOr<std::shared_ptr<Device>> Open(std::shared_ptr<const Library> library,
                                                      int index, int64_t memory_limit_bytes,
                                                      const VendorChoice& libraries = {});
  ~Device();

  int index() const { return index_; }
  const std::string& name() const { return name_; }  // "cuda:0"
  const FloeCudaDevice& properties() const { return properties_; }
  const Library& library() const { return *library_; }
  const FloeCudaLibrary& calls() const { return library_->calls(); }
  const DeviceBudget& budget() const { return budget_; }
  DeviceGate& gate() { return gate_; }
  // Null: none was chosen.
  VendorLibraries* libraries() const { return libraries_.get(); }

  // The device that other libraries use, for what this thread calls.
  absl::Status MakeCurrent();
  // FAILED_PRECONDITION for a kernel that needs a later device.
  absl::Status CheckCanRun(KernelId kernel) const;
  // The status of what a call returned. `what` says what was being done. After an error that CUDA
  // does not recover from the device is lost, for good.
  absl::Status Check(int error, const std::string& what);
  // For an error after which nobody knows what still runs on the device.
  absl::Status CheckWait(int error, const std::string& what);
  // UNAVAILABLE, with the reason, once the device is lost.
  absl::Status CheckAlive() const;

  // Runs of islands, since it was opened: those that it did, those that it did not, and how many of
  // the latter the host computed (OnDeviceError::kCpu).
  int64_t runs() const { return runs_.load(std::memory_order_relaxed); }
  int64_t failed_runs() const { return failed_runs_.load(std::memory_order_relaxed); }
  int64_t answered_by_cpu() const { return answered_by_cpu_.load(std::memory_order_relaxed); }
  void CountRun(bool done) {
    (done ? runs_ : failed_runs_).fetch_add(1, std::memory_order_relaxed);
  }
  void CountAnsweredByCpu() {
    answered_by_cpu_.fetch_add(1, std::memory_order_relaxed);
    if (DeviceGate::User* const user = ScopedDeviceUser::Current()) user->CountAnsweredByCpu();
  }

 private:
  Device(std::shared_ptr<const Library> library, int index, int64_t memory_limit_bytes);
  absl::Status Start(const VendorChoice& libraries);
  absl::Status LoadKernels();
  absl::Status Lose(const absl::Status& why);

  const std::shared_ptr<const Library> library_;
  const int index_;
  const std::string name_;
  const DeviceBudget budget_;
  DeviceGate gate_;
  FloeCudaDevice properties_ = {};
  std::unique_ptr<VendorLibraries> libraries_;
  std::atomic<bool> lost_{false};
  std::atomic<int64_t> runs_{0}, failed_runs_{0}, answered_by_cpu_{0};
  mutable Mutex mutex_;
  std::string why_lost_ ABSL_GUARDED_BY(mutex_);
};

// Bytes of a device. Threading: one thread at a time.
class DeviceBuffer {
 public:
  // RESOURCE_EXHAUSTED names the device, what was asked for and what is free.
  static absl::StatusOr<DeviceBuffer> Make(std::shared_ptr<Device> device, size_t bytes);
  DeviceBuffer() = default;
  ~DeviceBuffer();
  DeviceBuffer(DeviceBuffer&& other) noexcept { Swap(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    Swap(other);
    return *this;
  }

  std::byte* data() const { return data_; }  // an address of the device
  size_t size() const { return bytes_; }

  // Return when the bytes are copied. Not for what a run on some stream uses at the time.
  absl::Status Upload(size_t offset, const void* from, size_t bytes);
  absl::Status Download(size_t offset, void* to, size_t bytes) const;

 private:
  void Swap(DeviceBuffer& other) noexcept;
  absl::Status CheckRange(size_t offset, size_t bytes) const;
  std::shared_ptr<Device> device_;
  DeviceShare share_;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

// Bytes of the host that devices copy from and to by themselves; counted in memory_limit
// (base/memory_budget.h). Threading: one thread at a time.
class PinnedBuffer {
 public:
  static absl::StatusOr<PinnedBuffer> Make(std::shared_ptr<Device> device, size_t bytes);
  PinnedBuffer() = default;
  ~PinnedBuffer();
  PinnedBuffer(PinnedBuffer&& other) noexcept { Swap(other); }
  PinnedBuffer& operator=(PinnedBuffer&& other) noexcept {
    Swap(other);
    return *this;
  }

  std::byte* data() const { return data_; }
  size_t size() const { return bytes_; }

 private:
  void Swap(PinnedBuffer& other) noexcept;
  std::shared_ptr<Device> device_;
  MemoryShare share_;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

// Work of a device that is done in order. Threading: one thread at a time.
class Stream {
 public:
  static absl::StatusOr<Stream> Make(std::shared_ptr<Device> device);
  Stream() = default;
  ~Stream();
  Stream(Stream&& other) noexcept { Swap(other); }
  Stream& operator=(Stream&& other) noexcept {
    Swap(other);
    return *this;
  }

  FloeCudaStream handle() const { return handle_; }
  const std::shared_ptr<Device>& device() const { return device_; }
  // Until all of its work is done; the errors of that work. `what` says what it was.
  absl::Status Wait(const std::string& what) const;

 private:
  void Swap(Stream& other) noexcept;
  std::shared_ptr<Device> device_;
  FloeCudaStream handle_ = nullptr;
};

}  // namespace floe::cuda
