#include "server/registry/memory_budget.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/mutex.h"
#include "base/status.h"
#include "server/registry/version_policy.h"

namespace floe::server {
namespace {

std::string Bytes(int64_t bytes) {
  if (bytes < (int64_t{10} << 20)) return absl::StrCat(bytes, " bytes");
  return absl::StrFormat("%.1f MiB (%d bytes)", static_cast<double>(bytes) / (1 << 20), bytes);
}

}  // namespace

struct MemoryShare::Ledger {
  explicit Ledger(int64_t limit_bytes) : limit(limit_bytes) {}

  absl::Status Change(int64_t from, int64_t to) {
    MutexLock lock(mutex);
    const int64_t others = in_use - from;
    if (limit > 0 && to > from && to > limit - others) {
      const absl::Status error = absl::ResourceExhaustedError(
          absl::StrCat("it needs ", Bytes(to), " of memory, but other models use ", Bytes(others),
                       " and memory_limit is ", Bytes(limit)));
      return to > limit ? Final(error) : error;
    }
    in_use = others + to;
    return absl::OkStatus();
  }

  const int64_t limit;
  Mutex mutex;
  int64_t in_use ABSL_GUARDED_BY(mutex) = 0;
};

MemoryShare::~MemoryShare() {
  if (ledger_ != nullptr) (void)ledger_->Change(bytes_, 0);
}

MemoryShare::MemoryShare(MemoryShare&& other) noexcept
    : ledger_(std::exchange(other.ledger_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

MemoryShare& MemoryShare::operator=(MemoryShare&& other) noexcept {
  std::swap(ledger_, other.ledger_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

absl::Status MemoryShare::Resize(int64_t bytes) {
  if (ledger_ == nullptr) return absl::OkStatus();
  FLOE_RETURN_IF_ERROR(ledger_->Change(bytes_, bytes));
  bytes_ = bytes;
  return absl::OkStatus();
}

MemoryBudget::MemoryBudget(int64_t limit_bytes)
    : ledger_(std::make_shared<MemoryShare::Ledger>(limit_bytes)) {}

int64_t MemoryBudget::limit() const { return ledger_->limit; }

int64_t MemoryBudget::in_use() const {
  MutexLock lock(ledger_->mutex);
  return ledger_->in_use;
}

absl::StatusOr<MemoryShare> MemoryBudget::Take(int64_t bytes) {
  FLOE_RETURN_IF_ERROR(ledger_->Change(0, bytes));
  MemoryShare share;
  share.ledger_ = ledger_;
  share.bytes_ = bytes;
  return share;
}

}  // namespace floe::server
