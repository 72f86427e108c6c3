// DeviceBudget: how many bytes of a device's memory may be used (gpu_memory_limit), and the shares
// that are held of it. Exact: a share is granted while the sum of all is within the limit.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace floe::cuda {

// Bytes held of a budget, which they may outlive; given back when the share ends. Threading: one
// thread at a time.
class DeviceShare {
 public:
  DeviceShare() = default;  // of no budget
  ~DeviceShare();
  DeviceShare(DeviceShare&& other) noexcept;
  DeviceShare& operator=(DeviceShare&& other) noexcept;

  int64_t bytes() const { return bytes_; }

 private:
  friend class DeviceBudget;
  struct Ledger;
  DeviceShare(std::shared_ptr<Ledger> ledger, int64_t bytes);
  std::shared_ptr<Ledger> ledger_;
  int64_t bytes_ = 0;
};

// Copies are the same budget. Threading: any thread.
class DeviceBudget {
 public:
  // `device` is named in errors: "cuda:0". 0: no limit.
  DeviceBudget(std::string device, int64_t limit_bytes);

  int64_t limit() const;
  int64_t in_use() const;
  // RESOURCE_EXHAUSTED with what is asked for, in use and allowed.
  absl::StatusOr<DeviceShare> Take(int64_t bytes) const;

 private:
  std::shared_ptr<DeviceShare::Ledger> ledger_;
};

}  // namespace floe::cuda
