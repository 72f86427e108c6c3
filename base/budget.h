// Budget: how much memory, work and time one load or one run may use. A hostile or broken model
// ends in an error, and not in a daemon without memory or a thread that never comes back.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/cancel.h"
#include "base/clock.h"

namespace floe {

struct ResourceLimits {
  int64_t max_value_bytes = int64_t{1} << 38;  // of one tensor
  int64_t max_bytes = int64_t{1} << 40;        // of all values held at one time
  int64_t max_loop_iterations = INT64_MAX;     // of one run, over all its loops
  // Nodes looked at while types are inferred or a signature is compiled: subgraphs count as often
  // as control flow reaches them, which nesting can multiply without end.
  int64_t max_visits = 5'000'000;
};

// Threading: counted by one thread at a time, the one whose BudgetScope holds it. Memory that was
// charged may be freed by any thread, also after the budget is gone.
class Budget {
 public:
  explicit Budget(const ResourceLimits& limits = {}) : limits_(limits) {}
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  // The budget of this thread's innermost BudgetScope; null outside any.
  static Budget* Current();

  const ResourceLimits& limits() const { return limits_; }
  void SetLimits(const ResourceLimits& limits) { limits_ = limits; }
  void SetDeadline(std::optional<TimePoint> deadline, const Clock* clock = &Clock::Steady());
  void SetCancel(const CancelToken* cancel) { cancel_ = cancel; }  // null: none

  // A new run: iterations and visits count from zero. Memory still held stays charged.
  void Restart() { iterations_ = visits_ = 0; }

  // CANCELLED or DEADLINE_EXCEEDED.
  absl::Status CheckTime() const;
  // Before each iteration of a loop; RESOURCE_EXHAUSTED past max_loop_iterations, or as CheckTime.
  absl::Status SpendRound();
  // RESOURCE_EXHAUSTED past max_visits.
  absl::Status SpendVisits(int64_t nodes);
  // RESOURCE_EXHAUSTED unless one more value, or block, of so many bytes may be made.
  absl::Status CheckValue(int64_t bytes) const;
  absl::Status CheckBlock(int64_t bytes) const;

  int64_t bytes_held() const { return held_ == nullptr ? 0 : held_->load(); }

 private:
  friend class MemoryCharge;
  friend class VisitScope;
  ResourceLimits limits_;
  std::optional<TimePoint> deadline_;
  const Clock* clock_ = nullptr;
  const CancelToken* cancel_ = nullptr;
  int64_t iterations_ = 0, visits_ = 0;
  std::shared_ptr<std::atomic<int64_t>> held_;  // made with the first charge
};

// Makes `budget` the thread's current one. Scopes nest.
class BudgetScope {
 public:
  explicit BudgetScope(Budget* budget);
  ~BudgetScope();
  BudgetScope(const BudgetScope&) = delete;
  BudgetScope& operator=(const BudgetScope&) = delete;

 private:
  Budget* const outer_;
};

// A BudgetScope only where the thread has no budget yet.
class DefaultBudget {
 public:
  explicit DefaultBudget(const ResourceLimits& limits) {
    if (Budget::Current() != nullptr) return;
    budget_.emplace(limits);
    scope_.emplace(&*budget_);
  }

 private:
  std::optional<Budget> budget_;
  std::optional<BudgetScope> scope_;
};

// Within it the current budget's visits count from zero: shapes that come up during a run are
// inferred then, and a long run may do so often.
class VisitScope {
 public:
  VisitScope()
      : budget_(Budget::Current()),
        outer_(budget_ == nullptr ? 0 : std::exchange(budget_->visits_, 0)) {}
  ~VisitScope() {
    if (budget_ != nullptr) budget_->visits_ = outer_;
  }
  VisitScope(const VisitScope&) = delete;
  VisitScope& operator=(const VisitScope&) = delete;

 private:
  Budget* const budget_;
  const int64_t outer_;
};

// Bytes counted against the budget that was current when they were taken, until destroyed.
class MemoryCharge {
 public:
  MemoryCharge() = default;
  // Nothing is charged where there is no budget. Throws std::bad_alloc past the budget.
  explicit MemoryCharge(int64_t bytes);
  ~MemoryCharge() {
    if (held_ != nullptr) held_->fetch_sub(bytes_);
  }
  MemoryCharge(MemoryCharge&& o) noexcept
      : held_(std::move(o.held_)), bytes_(std::exchange(o.bytes_, 0)) {}
  MemoryCharge& operator=(MemoryCharge&& o) noexcept {
    std::swap(held_, o.held_);
    std::swap(bytes_, o.bytes_);
    return *this;
  }

 private:
  std::shared_ptr<std::atomic<int64_t>> held_;
  int64_t bytes_ = 0;
};

// For the current budget, and OK where there is none.
absl::Status CheckValueBytes(int64_t bytes);
absl::Status CheckBlockBytes(int64_t bytes);
absl::Status SpendVisits(int64_t nodes);
absl::Status CheckRunTime();
absl::Status SpendLoopRound();

// A vector whose every block the current budget allows, else std::bad_alloc. For scratch memory of
// a size that values or dims say, where no tensor of that size was allocated before. Not charged.
template <typename T>
struct BudgetAllocator {
  using value_type = T;
  BudgetAllocator() = default;
  template <typename U>
  BudgetAllocator(const BudgetAllocator<U>&) {}  // NOLINT(google-explicit-constructor)
  T* allocate(size_t n) {
    int64_t bytes = 0;
    if (__builtin_mul_overflow(n, sizeof(T), &bytes) || !CheckBlockBytes(bytes).ok())
      throw std::bad_alloc();
    return std::allocator<T>().allocate(n);
  }
  void deallocate(T* memory, size_t n) { std::allocator<T>().deallocate(memory, n); }
  template <typename U>
  bool operator==(const BudgetAllocator<U>&) const {
    return true;
  }
};
template <typename T>
using BudgetVector = std::vector<T, BudgetAllocator<T>>;

// What `body` returns, or RESOURCE_EXHAUSTED when memory runs out inside it. The boundary where
// allocations that cannot return an error (containers, tensors of kernels) end.
template <typename Body>
auto CatchOutOfMemory(const Body& body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory, or past the memory limit of one run");
  } catch (const std::length_error&) {
    return absl::ResourceExhaustedError("a value is longer than memory can hold");
  }
}

}  // namespace floe
