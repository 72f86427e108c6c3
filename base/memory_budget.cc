#include "base/memory_budget.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/mutex.h"
#include "base/status.h"

namespace floe {
namespace {

// The part of the limit that large shares leave to small ones.
constexpr int64_t kSparePart = 16;
constexpr int64_t kMostBytes = int64_t{1} << 60;  // where there is no limit

thread_local MemoryScope* current = nullptr;

std::string Bytes(int64_t bytes) {
  if (bytes < (int64_t{10} << 20)) return absl::StrCat(bytes, " bytes");
  return absl::StrFormat("%.1f MiB (%d bytes)", static_cast<double>(bytes) / (1 << 20), bytes);
}

}  // namespace

struct MemoryShare::Ledger {
  explicit Ledger(int64_t limit_bytes) : limit(limit_bytes) {}

  bool TryAdd(int64_t bytes) {
    int64_t now = in_use.load(std::memory_order_relaxed);
    const int64_t most = limit > 0 ? limit - std::min(bytes, limit / kSparePart) : kMostBytes;
    do {
      if (now > most - bytes) return false;
    } while (!in_use.compare_exchange_weak(now, now + bytes, std::memory_order_relaxed));
    return true;
  }

  absl::Status Add(int64_t bytes) {
    if (bytes <= 0 || TryAdd(bytes)) return absl::OkStatus();
    AskKeepers();
    if (TryAdd(bytes)) return absl::OkStatus();
    return absl::ResourceExhaustedError(
        absl::StrCat("it needs ", Bytes(bytes), " of memory, but ", Bytes(in_use.load()),
                     " are in use and memory_limit is ", Bytes(limit)));
  }

  void Remove(int64_t bytes) { in_use.fetch_sub(bytes, std::memory_order_relaxed); }

  void AskKeepers() {
    std::vector<std::shared_ptr<MemoryKeeper>> asked;  // without the lock: they remove from here
    {
      MutexLock lock(mutex);
      for (const auto& keeper : keepers)
        if (auto there = keeper.lock()) asked.push_back(std::move(there));
    }
    for (const auto& keeper : asked) keeper->GiveBack();
  }

  const int64_t limit;
  std::atomic<int64_t> in_use{0};
  Mutex mutex;
  std::vector<std::weak_ptr<MemoryKeeper>> keepers ABSL_GUARDED_BY(mutex);
};

MemoryShare::MemoryShare(std::shared_ptr<Ledger> ledger, int64_t bytes)
    : ledger_(std::move(ledger)), bytes_(bytes) {}

MemoryShare::~MemoryShare() {
  if (ledger_ != nullptr) ledger_->Remove(bytes_);
}

MemoryShare::MemoryShare(MemoryShare&& other) noexcept
    : ledger_(std::exchange(other.ledger_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

MemoryShare& MemoryShare::operator=(MemoryShare&& other) noexcept {
  MemoryShare old = std::move(*this);
  ledger_ = std::exchange(other.ledger_, nullptr);
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

absl::Status MemoryShare::Resize(int64_t bytes) {
  if (ledger_ == nullptr) return absl::OkStatus();
  if (bytes < bytes_) ledger_->Remove(bytes_ - bytes);
  FLOE_RETURN_IF_ERROR(ledger_->Add(bytes - bytes_));
  bytes_ = bytes;
  return absl::OkStatus();
}

void MemoryShare::Add(MemoryShare&& other) {
  if (ledger_ == nullptr) ledger_ = other.ledger_;
  if (ledger_ != other.ledger_) return;  // its own end gives them back
  bytes_ += std::exchange(other.bytes_, 0);
}

MemoryShare MemoryShare::Split(int64_t bytes) {
  const int64_t part = std::clamp<int64_t>(bytes, 0, bytes_);
  bytes_ -= part;
  return {ledger_, part};
}

MemoryBudget::MemoryBudget(int64_t limit_bytes)
    : ledger_(std::make_shared<MemoryShare::Ledger>(limit_bytes)) {}

int64_t MemoryBudget::limit() const { return ledger_->limit; }
int64_t MemoryBudget::in_use() const { return ledger_->in_use.load(); }

absl::StatusOr<MemoryShare> MemoryBudget::Take(int64_t bytes) const {
  FLOE_RETURN_IF_ERROR(ledger_->Add(bytes));
  return MemoryShare(ledger_, bytes);
}

void MemoryBudget::AddKeeper(std::weak_ptr<MemoryKeeper> keeper) const {
  MutexLock lock(ledger_->mutex);
  auto& keepers = ledger_->keepers;
  std::erase_if(keepers, [](const auto& old) { return old.expired(); });
  keepers.push_back(std::move(keeper));
}

MemoryScope::MemoryScope(const MemoryBudget& budget, MemoryShare* prepaid)
    : budget_(budget), prepaid_(prepaid), outer_(std::exchange(current, this)) {}

MemoryScope::~MemoryScope() { current = outer_; }

const MemoryBudget* MemoryScope::Current() {
  return current == nullptr ? nullptr : &current->budget_;
}

absl::Status MemoryScope::Explain(const absl::Status& error) const {
  if (!absl::IsResourceExhausted(error) || refusal_.ok()) return error;
  const std::string said(error.message());
  if (said.find("memory_limit") != std::string::npos) return error;  // it has its own numbers
  absl::Status explained(error.code(), absl::StrCat(said, ": ", std::string(refusal_.message())));
  error.ForEachPayload([&](absl::string_view type, const absl::Cord& payload) {
    explained.SetPayload(type, payload);
  });
  return explained;
}

absl::Status CheckMemory(int64_t bytes) {
  if (current == nullptr) return absl::OkStatus();
  const int64_t prepaid = current->prepaid_ == nullptr ? 0 : current->prepaid_->bytes();
  if (bytes <= prepaid) return absl::OkStatus();
  absl::Status status = current->budget_.Take(bytes - prepaid).status();
  if (!status.ok()) current->refusal_ = status;
  return status;
}

absl::StatusOr<MemoryShare> TakeMemory(int64_t bytes) {
  if (current == nullptr || bytes <= 0) return MemoryShare();
  MemoryShare share;
  if (current->prepaid_ != nullptr) share = current->prepaid_->Split(bytes);
  absl::StatusOr<MemoryShare> rest = current->budget_.Take(bytes - share.bytes());
  if (rest.ok()) {
    rest->Add(std::move(share));
  } else {
    if (current->prepaid_ != nullptr) current->prepaid_->Add(std::move(share));
    current->refusal_ = rest.status();
  }
  return rest;
}

MemoryShare TakeMemoryOrThrow(int64_t bytes) {
  absl::StatusOr<MemoryShare> share = TakeMemory(bytes);
  if (!share.ok()) throw std::bad_alloc();
  return *std::move(share);
}

}  // namespace floe
