// DeviceRun: launches that a device makes in one go, between the copies of their inputs and
// outputs.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/cuda/device/device.h"
#include "kernels/cuda/launch.h"

namespace floe::cuda {

// What is copied before or after the launches; `host` is pinned.
struct DevicePort {
  std::byte* host;
  std::byte* device;
  size_t bytes;  // 0: nothing is copied
};

struct DeviceProgram {
  std::string name;  // for errors: the model and island
  absl::Span<const Launch> launches;
  absl::Span<const DevicePort> inputs, outputs;
};

// One CUDA graph of a program. All memory that the program names outlives it. Threading: one thread
// at a time.
class DeviceRun {
 public:
  // Writes the graph and uploads it, so that no run is slower than others. `stream` is of the
  // device and free of work.
  static absl::StatusOr<std::unique_ptr<DeviceRun>> Make(const Stream& stream,
                                                         const DeviceProgram& program);
  ~DeviceRun();
  DeviceRun(const DeviceRun&) = delete;
  DeviceRun& operator=(const DeviceRun&) = delete;

  // The inputs lie at their `host`; returns when the outputs lie there. After an error they are
  // undefined, and nothing of this run is under way: either the device can be used further, or it
  // is lost (UNAVAILABLE).
  absl::Status Run(const Stream& stream);

 private:
  DeviceRun(std::shared_ptr<Device> device, std::string name);
  absl::Status Instantiate(FloeCudaGraph graph, const Stream& stream);

  const std::shared_ptr<Device> device_;
  const std::string name_;
  FloeCudaExec exec_ = nullptr;
};

}  // namespace floe::cuda
