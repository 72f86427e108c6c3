// ModelDevices: on which device a model is computed, by the configuration and by what is there.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "config/config.h"
#include "kernels/cuda/device/devices.h"

namespace floe::server {

// Where a model is computed.
struct ModelPlace {
  std::shared_ptr<cuda::Device> device;  // null: the CPU
  std::string why_cpu;                   // empty: it is computed by the device, or was not asked
  OnDeviceError on_error = OnDeviceError::kFail;
  std::shared_ptr<cuda::DeviceGate::User> user;  // of its runs there; null: the CPU
};

// One of a server's devices, for its status.
struct DeviceStatus {
  std::string device;  // "cuda:0"
  std::string name;    // "NVIDIA H100 80GB HBM3"; empty: it cannot be used, and `error` says why
  std::string pci_bus;
  int major = 0, minor = 0;  // compute capability
  int64_t total_bytes = 0, limit_bytes = 0, in_use_bytes = 0;
  int64_t runs = 0, failed_runs = 0, answered_by_cpu = 0;
  absl::Status error;  // why it is lost; OK while it is not
};
struct BackendStatus {
  std::string backend;   // what is used: "cpu" or "cuda"
  std::string versions;  // of CUDA and the driver; empty: not known
  std::string why_cpu;   // empty where it is "cuda", or where the configuration says cpu
  std::vector<DeviceStatus> devices;
};

// Opens devices when the first model may use one, and says once in the log what is there.
// Threading: any thread.
class ModelDevices {
 public:
  // Of the configuration `backend` and what is about GPUs are read.
  explicit ModelDevices(const ServerConfig& config);

  // Backend cuda: opens the devices now. FAILED_PRECONDITION says why there is none, and the way
  // out.
  absl::Status Start();

  // For a load. FAILED_PRECONDITION or NOT_FOUND: the model wants a device that is not there, or
  // that the backend excludes. UNAVAILABLE: its device is lost.
  absl::StatusOr<ModelPlace> Choose(const ModelConfig& model);

  // Opens nothing.
  BackendStatus Status() const;
  // What went wrong on devices since the last line, at most one a minute and device: for the log.
  // One thread at a time.
  std::vector<std::string> Incidents(TimePoint now);

 private:
  struct Incident {
    int64_t failed = 0, answered = 0;  // that have been logged
    bool lost = false;
    TimePoint next = TimePoint::min();
  };
  absl::StatusOr<std::shared_ptr<cuda::Device>> Find(const ModelConfig& model,
                                                     const DeviceChoice& choice);
  void SayOnce();

  const Backend backend_;
  const OnDeviceError on_error_;
  cuda::Devices devices_;
  Mutex mutex_;
  bool said_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<int, Incident> incidents_;  // by device; of the thread that calls Incidents
};

}  // namespace floe::server
