#include "kernels/cuda/device/devices.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "kernels/cuda/device/vendor_libraries.h"

namespace floe::cuda {

const Devices::Opened& Devices::Open() {
  {
    MutexLock lock(mutex_);
    while (begun_ && opened_ == nullptr) done_.Wait(mutex_);
    if (opened_ != nullptr) return *opened_;
    begun_ = true;
  }
  auto opened = std::make_unique<const Opened>(OpenAll());  // readers do not wait for it
  MutexLock lock(mutex_);
  opened_ = std::move(opened);
  done_.NotifyAll();
  return *opened_;
}

const Devices::Opened* Devices::opened() const {
  MutexLock lock(mutex_);
  return opened_.get();
}

Devices::Opened Devices::OpenAll() const {
  Opened opened;
  const auto library = Library::Open();
  if (!library.ok()) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing sets it
    const bool named = std::getenv("FLOE_CUDA_LIBRARY") != nullptr;
    opened.no_library = absl::IsNotFound(library.status()) && !named;
    opened.why_none = library.status();
    return opened;
  }
  opened.versions = (*library)->Versions();
  const absl::StatusOr<int> count = (*library)->CountDevices();
  if (!count.ok()) {
    opened.why_none = count.status();
    return opened;
  }
  std::vector<std::string> reasons;
  for (int i = 0; i < *count; ++i) {
    FloeCudaDevice properties = {};
    // What fails here fails again in Open, with its reason.
    (void)(*library)->calls().device_properties(i, &properties);
    auto device = Device::Open(*library, i, limit_of_(static_cast<int64_t>(properties.total_bytes)),
                               libraries_);
    if (device.ok()) {
      opened.devices.push_back(*std::move(device));
    } else {
      reasons.emplace_back(device.status().message());
      opened.refused.emplace(i, device.status());
    }
  }
  if (!opened.devices.empty() && opened.devices[0]->libraries() != nullptr)
    absl::StrAppend(&opened.versions, ", ", opened.devices[0]->libraries()->text());
  if (opened.devices.empty())
    opened.why_none = absl::FailedPreconditionError(absl::StrJoin(reasons, "; "));
  return opened;
}

absl::StatusOr<std::shared_ptr<Device>> Devices::Find(int index) {
  const Opened& opened = Open();
  for (const std::shared_ptr<Device>& device : opened.devices)
    if (device->index() == index) return device;
  if (const auto refused = opened.refused.find(index); refused != opened.refused.end())
    return refused->second;
  FLOE_RETURN_IF_ERROR(opened.why_none);
  const size_t count = opened.devices.size() + opened.refused.size();
  return absl::NotFoundError(absl::StrCat("there is no device cuda:", index, ": the driver finds ",
                                          count, count == 1 ? " device" : " devices",
                                          ", from cuda:0; CUDA_VISIBLE_DEVICES may hide others"));
}

absl::StatusOr<std::shared_ptr<Device>> Devices::FindFreest() {
  const Opened& opened = Open();
  FLOE_RETURN_IF_ERROR(opened.why_none);
  std::shared_ptr<Device> freest;
  int64_t most = -1;
  for (const std::shared_ptr<Device>& device : opened.devices) {
    if (!device->CheckAlive().ok()) continue;
    if (const int64_t free = FreeBytes(*device); free > most) {
      most = free;
      freest = device;
    }
  }
  if (freest == nullptr) return opened.devices[0]->CheckAlive();
  return freest;
}

int64_t FreeBytes(const Device& device) {
  const int64_t limit = device.budget().limit() > 0
                            ? device.budget().limit()
                            : static_cast<int64_t>(device.properties().total_bytes);
  return std::max<int64_t>(0, limit - device.budget().in_use());
}

std::string DescribeLibrary() {
  const auto library = Library::Open();
  if (!library.ok()) return absl::StrCat("no CUDA: ", std::string(library.status().message()));
  std::string text = (*library)->Versions();
  const absl::StatusOr<int> count = (*library)->CountDevices();
  if (!count.ok()) return absl::StrCat(text, "\n", std::string(count.status().message()));
  for (int i = 0; i < *count; ++i) {
    FloeCudaDevice found = {};
    if ((*library)->calls().device_properties(i, &found) == 0)
      absl::StrAppend(&text, "\ncuda:", i, ": ", found.name, ", compute capability ", found.major,
                      ".", found.minor);
  }
  return text;
}

}  // namespace floe::cuda
