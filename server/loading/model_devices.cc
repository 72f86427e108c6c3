#include "server/loading/model_devices.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/byte_size.h"
#include "base/status.h"
#include "server/loading/load_errors.h"

namespace floe::server {
namespace {

constexpr Duration kBetweenLines = std::chrono::minutes(1);

std::string DeviceText(const cuda::Device& device) {
  const FloeCudaDevice& properties = device.properties();
  const auto human = [](int64_t bytes) { return HumanBytes(static_cast<double>(bytes)); };
  const int64_t limit = device.budget().limit();
  return absl::StrCat(device.name(), " (", properties.name, ", compute capability ",
                      properties.major, ".", properties.minor, ", ",
                      human(static_cast<int64_t>(properties.total_bytes)),
                      limit > 0 ? absl::StrCat(", gpu_memory_limit ", human(limit)) : "", ")");
}

DeviceStatus StatusOf(const cuda::Device& device) {
  const FloeCudaDevice& properties = device.properties();
  DeviceStatus status;
  status.device = device.name();
  status.name = properties.name;
  status.pci_bus = properties.pci_bus;
  status.major = properties.major;
  status.minor = properties.minor;
  status.total_bytes = static_cast<int64_t>(properties.total_bytes);
  status.limit_bytes = device.budget().limit();
  status.in_use_bytes = device.budget().in_use();
  status.runs = device.runs();
  status.failed_runs = device.failed_runs();
  status.answered_by_cpu = device.answered_by_cpu();
  status.error = device.CheckAlive();
  return status;
}

std::string Text(const absl::Status& status) { return std::string(status.message()); }

}  // namespace

ModelDevices::ModelDevices(const ServerConfig& config)
    : backend_(config.backend),
      on_error_(config.on_device_error),
      devices_([limit = config.gpu_memory_limit](int64_t bytes) { return limit.In(bytes); },
               cuda::VendorChoice::Named(config.gpu_libraries)) {}

absl::Status ModelDevices::Start() {
  if (backend_ != Backend::kCuda) return absl::OkStatus();
  const absl::Status& none = devices_.Open().why_none;
  SayOnce();
  if (none.ok()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("backend is cuda, and there is no GPU to use: ", Text(none),
                   "; or set backend: auto, which serves from the CPU where there is none"));
}

void ModelDevices::SayOnce() {
  const cuda::Devices::Opened& opened = devices_.Open();
  {
    MutexLock lock(mutex_);
    if (std::exchange(said_, true)) return;
  }
  for (const auto& [index, why] : opened.refused)
    spdlog::warn("cuda:{} is not used: {}", index, Text(why));
  for (const auto& device : opened.devices)
    spdlog::info("{}, {}", DeviceText(*device), opened.versions);
  if (opened.why_none.ok()) return;
  // Most machines have neither, and their operators want no advice.
  if (opened.no_library)
    spdlog::info("models are computed by the CPU: floe-cuda is not installed");
  else
    spdlog::info("models are computed by the CPU: {}", Text(opened.why_none));
}

absl::StatusOr<std::shared_ptr<cuda::Device>> ModelDevices::Find(const ModelConfig& model,
                                                                 const DeviceChoice& choice) {
  auto device = choice.index >= 0 ? devices_.Find(choice.index) : devices_.FindFreest();
  SayOnce();
  if (device.ok()) FLOE_RETURN_IF_ERROR((*device)->CheckAlive());
  if (!device.ok() && choice.kind == DeviceChoice::Kind::kCuda)
    return Annotate(device.status(),
                    absl::StrCat("model '", model.name, "' has device ", model.device));
  return device;
}

absl::StatusOr<ModelPlace> ModelDevices::Choose(const ModelConfig& model) {
  const DeviceChoice choice = DeviceChoice::Parse(model.device).value_or(DeviceChoice{});
  ModelPlace place;
  place.on_error = model.on_device_error.value_or(on_error_);
  if (choice.kind == DeviceChoice::Kind::kCpu) {
    place.why_cpu = "its device is cpu";
    return place;
  }
  if (backend_ == Backend::kCpu) {
    if (choice.kind == DeviceChoice::Kind::kCuda)
      return absl::FailedPreconditionError(
          absl::StrCat("model '", model.name, "' has device ", model.device,
                       ", and the server has backend cpu: set device: auto, or backend: auto"));
    place.why_cpu = "the backend is cpu";
    return place;
  }
  auto device = Find(model, choice);
  if (device.ok()) {
    place.device = *std::move(device);
    return place;
  }
  // A model that serves from a device does not silently become slower after a loss.
  const bool lost = absl::IsUnavailable(device.status());
  const bool cpu_will_do =
      lost ? place.on_error == OnDeviceError::kCpu : choice.kind == DeviceChoice::Kind::kAuto;
  if (!cpu_will_do) return Final(device.status());  // devices do not come and go
  place.why_cpu = Text(device.status());
  return place;
}

BackendStatus ModelDevices::Status() const {
  BackendStatus status;
  status.backend = "cpu";
  const cuda::Devices::Opened* const opened = devices_.opened();
  if (opened == nullptr) {
    if (backend_ != Backend::kCpu) status.why_cpu = "no model asks for a GPU";
    return status;
  }
  status.versions = opened->versions;
  status.why_cpu = Text(opened->why_none);
  for (const auto& device : opened->devices) status.devices.push_back(StatusOf(*device));
  for (const auto& [index, why] : opened->refused) {
    DeviceStatus refused;
    refused.device = absl::StrCat("cuda:", index);
    refused.error = why;
    status.devices.push_back(std::move(refused));
  }
  if (!opened->devices.empty()) status.backend = "cuda";
  return status;
}

std::vector<std::string> ModelDevices::Incidents(TimePoint now) {
  std::vector<std::string> lines;
  const cuda::Devices::Opened* const opened = devices_.opened();
  if (opened == nullptr) return lines;
  for (const auto& device : opened->devices) {
    Incident& seen = incidents_[device->index()];
    if (const absl::Status alive = device->CheckAlive(); !alive.ok() && !seen.lost) {
      seen.lost = true;
      lines.push_back(Text(alive));  // it names the device
    }
    const int64_t failed = device->failed_runs(), answered = device->answered_by_cpu();
    if ((failed == seen.failed && answered == seen.answered) || now < seen.next) continue;
    lines.push_back(absl::StrCat(device->name(), ": ", failed - seen.failed, " runs failed, and ",
                                 answered - seen.answered, " were computed by the CPU"));
    seen.failed = failed;
    seen.answered = answered;
    seen.next = now + kBetweenLines;
  }
  return lines;
}

}  // namespace floe::server
