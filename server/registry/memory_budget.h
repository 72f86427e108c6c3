// MemoryBudget: how much memory the loaded models may have together, and who has how much.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"

namespace floe::server {

// Bytes held of a budget, which they may outlive, given back when they go. Threading: one thread at
// a time.
class MemoryShare {
 public:
  MemoryShare() = default;  // of no budget
  ~MemoryShare();
  MemoryShare(MemoryShare&& other) noexcept;
  MemoryShare& operator=(MemoryShare&& other) noexcept;

  int64_t bytes() const { return bytes_; }
  // RESOURCE_EXHAUSTED, and nothing changed, when the budget has not enough left.
  absl::Status Resize(int64_t bytes);

 private:
  friend class MemoryBudget;
  struct Ledger;
  std::shared_ptr<Ledger> ledger_;
  int64_t bytes_ = 0;
};

// Threading: any thread.
class MemoryBudget {
 public:
  explicit MemoryBudget(int64_t limit_bytes);  // 0: no limit

  int64_t limit() const;  // 0: none
  int64_t in_use() const;
  // RESOURCE_EXHAUSTED with what is needed, in use and allowed. One that would not fit even alone
  // is final (MayRetry).
  absl::StatusOr<MemoryShare> Take(int64_t bytes);

 private:
  const std::shared_ptr<MemoryShare::Ledger> ledger_;
};

}  // namespace floe::server
