#include "kernels/cuda/device/device_budget.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/byte_size.h"
#include "base/mutex.h"

namespace floe::cuda {

struct DeviceShare::Ledger {
  Ledger(std::string device, int64_t limit) : device(std::move(device)), limit(limit) {}
  const std::string device;
  const int64_t limit;
  Mutex mutex;
  int64_t in_use ABSL_GUARDED_BY(mutex) = 0;
};

DeviceShare::DeviceShare(std::shared_ptr<Ledger> ledger, int64_t bytes)
    : ledger_(std::move(ledger)), bytes_(bytes) {}

DeviceShare::~DeviceShare() {
  if (ledger_ == nullptr) return;
  MutexLock lock(ledger_->mutex);
  ledger_->in_use -= bytes_;
}

DeviceShare::DeviceShare(DeviceShare&& other) noexcept
    : ledger_(std::exchange(other.ledger_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

DeviceShare& DeviceShare::operator=(DeviceShare&& other) noexcept {
  std::swap(ledger_, other.ledger_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

DeviceBudget::DeviceBudget(std::string device, int64_t limit_bytes)
    : ledger_(std::make_shared<DeviceShare::Ledger>(std::move(device), limit_bytes)) {}

int64_t DeviceBudget::limit() const { return ledger_->limit; }

int64_t DeviceBudget::in_use() const {
  MutexLock lock(ledger_->mutex);
  return ledger_->in_use;
}

absl::StatusOr<DeviceShare> DeviceBudget::Take(int64_t bytes) const {
  MutexLock lock(ledger_->mutex);
  const int64_t limit = ledger_->limit;
  if (limit > 0 && bytes > limit - ledger_->in_use)
    return absl::ResourceExhaustedError(absl::StrCat(
        ledger_->device, ": ", HumanBytes(static_cast<double>(bytes)), " are needed, and ",
        HumanBytes(static_cast<double>(ledger_->in_use)), " of gpu_memory_limit, ",
        HumanBytes(static_cast<double>(limit)), ", are in use"));
  ledger_->in_use += bytes;
  return DeviceShare(ledger_, bytes);
}

}  // namespace floe::cuda
