#include "base/budget.h"

#include "absl/strings/str_cat.h"
#include "base/memory_budget.h"
#include "base/status.h"

namespace floe {
namespace {

thread_local Budget* current_budget = nullptr;

}  // namespace

Budget* Budget::Current() { return current_budget; }

BudgetScope::BudgetScope(Budget* budget) : outer_(std::exchange(current_budget, budget)) {}
BudgetScope::~BudgetScope() { current_budget = outer_; }

void Budget::SetDeadline(std::optional<TimePoint> deadline, const Clock* clock) {
  deadline_ = deadline;
  clock_ = clock;
}

absl::Status Budget::CheckTime() const {
  if (cancel_ != nullptr && cancel_->cancelled())
    return absl::CancelledError("the run was cancelled");
  if (deadline_.has_value() && clock_->Now() >= *deadline_)
    return absl::DeadlineExceededError("the run's deadline has passed");
  return absl::OkStatus();
}

absl::Status Budget::SpendRound() {
  if (iterations_ >= limits_.max_loop_iterations) {
    return absl::ResourceExhaustedError(absl::StrCat("the loops of this run took more than ",
                                                     limits_.max_loop_iterations, " iterations"));
  }
  ++iterations_;
  return CheckTime();
}

absl::Status Budget::SpendVisits(int64_t nodes) {
  visits_ += nodes;
  if (visits_ <= limits_.max_visits) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("nested control flow makes the graph larger than any model: more than ",
                   limits_.max_visits, " nodes to look at"));
}

absl::Status Budget::CheckValue(int64_t bytes) const {
  if (bytes > limits_.max_value_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat("a value of ", bytes,
                                                     " bytes, more than the limit of ",
                                                     limits_.max_value_bytes, " for one value"));
  }
  return CheckBlock(bytes);
}

absl::Status Budget::CheckBlock(int64_t bytes) const {
  if (bytes < 0 || bytes > limits_.max_bytes - bytes_held()) {
    return absl::ResourceExhaustedError(absl::StrCat(
        bytes, " bytes beside the ", bytes_held(),
        " held already is past the memory limit of one run, ", limits_.max_bytes, " bytes"));
  }
  return absl::OkStatus();
}

MemoryCharge::MemoryCharge(int64_t bytes) {
  if (current_budget == nullptr || bytes == 0) return;
  if (!current_budget->CheckBlock(bytes).ok()) throw std::bad_alloc();
  if (current_budget->held_ == nullptr)
    current_budget->held_ = std::make_shared<std::atomic<int64_t>>(0);
  held_ = current_budget->held_;
  bytes_ = bytes;
  held_->fetch_add(bytes);
}

absl::Status CheckValueBytes(int64_t bytes) {
  if (current_budget != nullptr) FLOE_RETURN_IF_ERROR(current_budget->CheckValue(bytes));
  return CheckMemory(bytes);
}
absl::Status CheckBlockBytes(int64_t bytes) {
  if (current_budget != nullptr) FLOE_RETURN_IF_ERROR(current_budget->CheckBlock(bytes));
  return CheckMemory(bytes);
}
absl::Status SpendVisits(int64_t nodes) {
  return current_budget == nullptr ? absl::OkStatus() : current_budget->SpendVisits(nodes);
}
absl::Status CheckRunTime() {
  return current_budget == nullptr ? absl::OkStatus() : current_budget->CheckTime();
}
absl::Status SpendLoopRound() {
  return current_budget == nullptr ? absl::OkStatus() : current_budget->SpendRound();
}

}  // namespace floe
