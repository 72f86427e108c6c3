// Takes and releases slots, and remembers what runs took and who is in quarantine.
#include "server/scheduling/state.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/request/tuning.h"

namespace floe::server {

SlotTable::SlotTable(int slots) : slots_(slots) {
  for (int slot = slots - 1; slot >= 0; --slot) idle_.push_back(slot);
}

int SlotTable::Take(TimePoint now) {
  const int slot = idle_.back();
  idle_.pop_back();
  SlotUse& use = slots_[slot];
  use.started = now;
  use.rows = 0;
  use.failed = use.reported = false;
  use.abandoned.reset();
  return slot;
}

void SlotTable::Release(int slot, TimePoint now) {
  slots_[slot].started = TimePoint::max();
  slots_[slot].idle_since = now;
  idle_.push_back(slot);
}

Duration SlotTable::Remaining(TimePoint now) const {
  Duration remaining = Duration::zero();
  for (const SlotUse& use : slots_)
    if (use.busy()) remaining += std::max(Duration::zero(), use.started + use.expected - now);
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

void Quarantine::Add(uint64_t principal, TimePoint now) {
  Entry* place = &entries_[0];
  for (Entry& entry : entries_) {
    if (entry.principal == principal) {
      place = &entry;
      break;
    }
    if (entry.until < place->until) place = &entry;
  }
  last_until_ = now + tuning::kQuarantine;
  *place = {principal, last_until_};
}

bool Quarantine::Has(uint64_t principal, TimePoint now) const {
  if (principal == 0 || now >= last_until_) return false;
  return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.principal == principal && now < entry.until;
  });
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

int64_t MaxRows(const Request& request, const SchedulerOptions& options) {
  const int64_t own = request.binding.max_rows, most = options.limits.max_rows;
  return std::max<int64_t>(1, own == 0 ? most : std::min(own, most));
}

SchedulerState::SchedulerState(std::unique_ptr<Executor> runs, SchedulerOptions how)
    : executor(std::move(runs)),
      options(std::move(how)),
      memory(MemoryScope::Current() == nullptr ? MemoryBudget() : *MemoryScope::Current()),
      queue(options.limits),
      slots(executor->slots()),
      slowest(options.slowest, options.clock->Now()) {
  (void)CallerLeftError();
  (void)ExpiredError();
}

int SchedulerState::TakeSlot(absl::Span<Request* const> batch, BatchClose close, int worker,
                             TimePoint now) {
  const Request& first = *batch[0];
  const int slot = slots.Take(now);
  SlotUse& use = slots[slot];
  for (Request* request : batch) {
    use.rows += request->binding.rows;
    request->timings.queue = now - request->enqueued;
    queue_waits.Add(request->timings.queue, now);
  }
  CostProfile& profile = profiles.Of(first, *executor);
  BatchCounts& counted = profile.counts;
  ++counted.batches;
  counted.requests += batch.size();
  counted.rows += static_cast<uint64_t>(use.rows);
  counted.padded_rows += static_cast<uint64_t>(executor->RunRows(first, use.rows) - use.rows);
  ++counted.closed[static_cast<size_t>(close)];

  use.batches =
      std::max(1.0, static_cast<double>(use.rows) / static_cast<double>(options.limits.max_rows));
  use.key = first.binding.key;
  use.measured = executor->Expect(first, use.rows);
  use.expected = profile.Expect(use.measured, use.rows);
  use.worker = worker;
  use.batch = batch;
  if (batch.size() > 1) use.abandoned.emplace();
  return slot;
}

void SchedulerState::ReleaseSlot(int slot) {
  const TimePoint now = Now();
  const SlotUse& use = slots[slot];
  const Duration took = now - use.started;
  if (!use.failed) {  // how long a run is kept until it is given up says nothing of good ones
    slowest.Note(std::chrono::duration_cast<Duration>(took / use.batches), now);
    if (CostProfile* profile = profiles.Find(use.key); profile != nullptr)
      profile->Learn(use.measured, use.rows, took);
  }
  run_times.Add(took, now);
  last_finished = now;
  slots.Release(slot, now);
  SlotIsFree();
}

void SchedulerState::SlotIsFree() {
  if (!queue.load().empty() && waiting_workers > 0) work.NotifyOne();
  if (!stopping) return;
  idle.NotifyAll();
  work.NotifyAll();  // those that waited for the slot, should the queue be empty by now
}

void SchedulerState::CollectExpired(TimePoint now) {
  while (Request* const request = queue.TakeExpired(now))
    completion.Post(request, Outcome::kExpired, ExpiredError());
}

absl::Status SchedulerState::StoppingError() const {
  return absl::UnavailableError(absl::StrCat("model '", options.name, "' is being stopped"));
}

const absl::Status& CallerLeftError() {
  static const absl::Status error = absl::CancelledError("the caller cancelled the request");
  return error;
}

const absl::Status& ExpiredError() {
  static const absl::Status error =
      absl::DeadlineExceededError("the deadline passed while the request waited for its run");
  return error;
}

Outcome OutcomeOf(const absl::Status& status) {
  if (status.ok()) return Outcome::kAnswered;
  if (absl::IsCancelled(status)) return Outcome::kCancelled;
  return absl::IsDeadlineExceeded(status) ? Outcome::kExpired : Outcome::kFailed;
}

}  // namespace floe::server
