#include "server/scheduling/slots.h"

#include <algorithm>

#include "server/scheduling/tuning.h"

namespace floe::server {

SlotTable::SlotTable(int slots) : slots_(slots) {
  for (int slot = slots - 1; slot >= 0; --slot) idle_.push_back(slot);
}

int SlotTable::Take(const SlotUse& use) {
  const int slot = idle_.back();
  idle_.pop_back();
  SlotUse& to = slots_[slot].use;
  to.started = use.started;
  to.batches = use.batches;
  to.rows = use.rows;
  to.key = use.key;
  to.measured = use.measured;
  to.expected = use.expected;
  to.worker = use.worker;
  to.failed = to.reported = false;
  to.batch = use.batch;
  to.abandoned.reset();
  if (to.batch.size() > 1) to.abandoned.emplace();
  return slot;
}

void SlotTable::Release(int slot, TimePoint now) {
  slots_[slot].use.started = TimePoint::max();
  slots_[slot].idle_since = now;
  idle_.push_back(slot);
}

Duration SlotTable::Remaining(TimePoint now) const {
  Duration remaining = Duration::zero();
  for (const Slot& slot : slots_)
    if (slot.use.busy())
      remaining += std::max(Duration::zero(), slot.use.started + slot.use.expected - now);
  return remaining;
}

int SlotTable::TakeUnused(TimePoint used_before) {
  const auto found = std::find_if(idle_.begin(), idle_.end(),
                                  [&](int slot) { return slots_[slot].idle_since <= used_before; });
  if (found == idle_.end()) return -1;
  const int slot = *found;
  idle_.erase(found);
  slots_[slot].idle_since = TimePoint::max();
  return slot;
}

Duration SlowestRun::At(TimePoint now) const {
  Duration slowest = slowest_;
  for (TimePoint at = since_ + tuning::kForgetHalf; at <= now && slowest > least_;
       at += tuning::kForgetHalf)
    slowest = std::max(least_, slowest / 2);
  return slowest;
}

void SlowestRun::Note(Duration took, TimePoint now) {
  if (took < At(now)) return;
  slowest_ = took;
  since_ = now;
}

}  // namespace floe::server
