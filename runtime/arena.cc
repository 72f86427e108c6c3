#include "runtime/arena.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace floe {
namespace {

// More than any arena that could be meant; the check comes before the multiplication can overflow.
constexpr int64_t kMaxArenaBytes = int64_t{1} << 40;
constexpr int64_t kMaxRows = INT32_MAX;

}  // namespace

absl::Status Arena::Reserve(const Plan& plan, int64_t rows) {
  const int64_t sized = std::max<int64_t>(rows, 1);
  if (sized > kMaxRows || (plan.arena_per_row_ != 0 &&
                           sized > (kMaxArenaBytes - plan.arena_base_) / plan.arena_per_row_)) {
    return absl::ResourceExhaustedError(
        absl::StrCat(rows, " rows need more memory than any machine has"));
  }
  const int64_t scratch = plan.RunScratchBytes(rows);
  FLOE_RETURN_IF_ERROR(CheckBlockBytes(scratch));
  const size_t bytes = std::max(
      AlignUp(static_cast<size_t>(plan.arena_base_ + plan.arena_per_row_ * sized + scratch)),
      kAlignment);
  charge_ = MemoryCharge();  // an arena larger than this is no part of the next run
  FLOE_RETURN_IF_ERROR(CheckBlockBytes(static_cast<int64_t>(bytes)));
  charge_ = MemoryCharge(static_cast<int64_t>(bytes));
  rows_ = sized;
  if (block_.size() >= bytes) return absl::OkStatus();
  block_ = AlignedBuffer();
  share_ = MemoryShare();
  FLOE_ASSIGN_OR_RETURN(share_, TakeMemory(static_cast<int64_t>(bytes)));
  return CatchOutOfMemory([&]() -> absl::Status {
    block_ = AlignedBuffer(bytes);
    return absl::OkStatus();
  });
}

void Arena::Free() {
  block_ = AlignedBuffer();
  share_ = MemoryShare();
  charge_ = MemoryCharge();
}

}  // namespace floe
