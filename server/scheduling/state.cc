#include "server/scheduling/state.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"

namespace floe::server {

SchedulerState::SchedulerState(std::unique_ptr<Executor> runs, SchedulerOptions how)
    : executor(std::move(runs)),
      options(std::move(how)),
      memory(MemoryScope::Current() == nullptr ? MemoryBudget() : *MemoryScope::Current()),
      queue(options.limits),
      large({.max_queued_rows = INT64_MAX, .requests_are_rows = true, .max_bytes = SIZE_MAX}),
      slots(executor->slots()),
      slowest(options.slowest, options.clock->Now()) {
  (void)CallerLeftError();
  (void)ExpiredError();
}

int SchedulerState::TakeSlot(absl::Span<Request* const> batch, BatchClose close, int worker,
                             TimePoint now) {
  const Request& first = *batch[0];
  SlotUse use;
  for (Request* request : batch) {
    use.rows += request->binding.rows;
    request->timings.queue = now - request->enqueued;
    queue_waits.Add(request->timings.queue, now);
  }
  CostProfile& profile = profiles.Of(first, *executor);
  BatchCounts count;
  count.batches = 1;
  count.requests = batch.size();
  count.rows = static_cast<uint64_t>(use.rows);
  count.padded_rows = static_cast<uint64_t>(executor->RunRows(first, use.rows) - use.rows);
  count.closed[static_cast<size_t>(close)] = 1;
  profile.counts.Add(count);

  use.started = now;
  use.batches =
      std::max(1.0, static_cast<double>(use.rows) / static_cast<double>(options.limits.max_rows));
  use.key = first.binding.key;
  use.measured = executor->Expect(first, use.rows);
  use.expected = profile.Expect(use.measured, use.rows);
  use.worker = worker;
  use.batch = batch;
  return slots.Take(use);
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

bool SchedulerState::Remove(Request* request) {
  if (request->held_rows == 0) return queue.Remove(request);
  if (!large.Remove(request)) return false;
  queue.Release(request);
  return true;
}

void SchedulerState::SlotIsFree() {
  if (!queue.load().empty() && waiting_workers > 0) work.NotifyOne();
  if (!stopping) return;
  idle.NotifyAll();
  work.NotifyAll();  // those that waited for the slot, should the queue be empty by now
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
