// MemoryBudget: how much memory the process may use for its work together (memory_limit), and the
// shares that are held of it. Weights, arenas, pools, requests and replies all take theirs from the
// same one.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"

namespace floe {

// Something that keeps memory for later use and gives it back when memory is short.
class MemoryKeeper {
 public:
  virtual ~MemoryKeeper() = default;
  // Any thread, which may hold memory of the keeper but none of its locks.
  virtual void GiveBack() = 0;
};

// Bytes held of a budget, which they may outlive; given back when the share ends. Threading: one
// thread at a time.
class MemoryShare {
 public:
  MemoryShare() = default;  // of no budget
  ~MemoryShare();
  MemoryShare(MemoryShare&& other) noexcept;
  MemoryShare& operator=(MemoryShare&& other) noexcept;

  int64_t bytes() const { return bytes_; }
  // RESOURCE_EXHAUSTED, and nothing changed, when the budget has not enough left. Less is always
  // granted.
  absl::Status Resize(int64_t bytes);
  // Takes over the bytes of another share of the same budget.
  void Add(MemoryShare&& other);
  // Up to so many of its bytes, as a share of their own.
  MemoryShare Split(int64_t bytes);

 private:
  friend class MemoryBudget;
  struct Ledger;
  MemoryShare(std::shared_ptr<Ledger> ledger, int64_t bytes);
  std::shared_ptr<Ledger> ledger_;
  int64_t bytes_ = 0;
};

// Copies are the same budget. Threading: any thread.
class MemoryBudget {
 public:
  explicit MemoryBudget(int64_t limit_bytes = 0);  // 0: no limit

  int64_t limit() const;  // 0: none
  int64_t in_use() const;
  // RESOURCE_EXHAUSTED with what is needed, in use and allowed; keepers have been asked before. Who
  // takes much leaves as much again for those who take little, up to a sixteenth of the limit.
  absl::StatusOr<MemoryShare> Take(int64_t bytes) const;
  // Is asked when memory is short, as long as it lives.
  void AddKeeper(std::weak_ptr<MemoryKeeper> keeper) const;

 private:
  std::shared_ptr<MemoryShare::Ledger> ledger_;
};

// Names the budget that pays for what this thread allocates: tensors, arenas, blocks of pools,
// packed weights. Scopes nest; the innermost counts.
class MemoryScope {
 public:
  // `prepaid`, which outlives the scope, is used up first; null: nothing is.
  explicit MemoryScope(const MemoryBudget& budget, MemoryShare* prepaid = nullptr);
  ~MemoryScope();
  MemoryScope(const MemoryScope&) = delete;
  MemoryScope& operator=(const MemoryScope&) = delete;

  // The innermost scope's; null outside any.
  static const MemoryBudget* Current();

  // An error of memory that ran out, with the numbers where this scope's budget refused it.
  absl::Status Explain(const absl::Status& error) const;

 private:
  friend absl::StatusOr<MemoryShare> TakeMemory(int64_t bytes);
  friend absl::Status CheckMemory(int64_t bytes);
  const MemoryBudget budget_;
  MemoryShare* const prepaid_;
  absl::Status refusal_;
  MemoryScope* const outer_;
};

// Whether TakeMemory would give as much now; OK where the thread has no budget.
absl::Status CheckMemory(int64_t bytes);
// From the thread's budget; a share of no budget where there is none.
absl::StatusOr<MemoryShare> TakeMemory(int64_t bytes);
// The same where no status can be returned: throws std::bad_alloc, which CatchOutOfMemory catches.
MemoryShare TakeMemoryOrThrow(int64_t bytes);

}  // namespace floe
