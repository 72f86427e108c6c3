// Takes requests that are late or cancelled out of the queue.
#include "server/scheduling/expiry.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace floe::server {

void CollectExpired(SchedulerState& state, TimePoint now) {
  while (Queued* const request = state.queue.TakeExpired(now))
    state.completion.Post(request, Outcome::kExpired, ExpiredError());
}

void RefuseQueued(SchedulerState& state) {
  while (Queued* const request = state.queue.Any()) {
    state.queue.Remove(request);
    state.completion.Post(request, Outcome::kRefusedStopped, state.StoppingError());
  }
}

void Cancel(SchedulerState& state, Queued* request) {
  MutexLock lock(state.mutex);
  request->cancelled = true;
  if (state.queue.Remove(request))
    return state.completion.Post(request, Outcome::kCancelled, CallerLeftError());
  for (int slot = 0; slot < state.slots.size(); ++slot) {
    SlotUse& use = state.slots[slot];
    const auto left = [](const Queued* one) { return one->cancelled; };
    if (use.abandoned && !use.batch.empty() &&
        std::all_of(use.batch.begin(), use.batch.end(), left))
      use.abandoned->Cancel();
  }
}

void Expiry::Start(std::shared_ptr<AlarmThread> thread) {
  alarm_.emplace(std::move(thread), [this] { Ring(); });
  MutexLock lock(state_.mutex);
  alarm_at_ = TimePoint::max();
}

// A later deadline changes nothing, so a stream of requests with deadlines far away costs one ring
// per deadline length, not one per request.
void Expiry::Wake(TimePoint deadline) {
  if (deadline >= alarm_at_) return;
  alarm_at_ = deadline;
  alarm_->Set(deadline);
}

void Expiry::Ring() {
  MutexLock lock(state_.mutex);
  CollectExpired(state_, state_.Now());
  alarm_at_ = state_.queue.NextDeadline();
  alarm_->Set(alarm_at_);
}

}  // namespace floe::server
