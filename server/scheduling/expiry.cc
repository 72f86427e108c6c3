// Takes requests that are late or cancelled out of the queue.
#include "server/scheduling/expiry.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace floe::server {

void CollectExpired(SchedulerState& state, TimePoint now) {
  while (Request* const request = state.queue.TakeExpired(now))
    state.completion.Post(request, Outcome::kExpired, ExpiredError());
}

void RefuseQueued(SchedulerState& state) {
  while (Request* const request = state.queue.Any()) {
    state.queue.Remove(request);
    state.completion.Post(request, Outcome::kRefusedStopped, state.StoppingError());
  }
}

void Cancel(SchedulerState& state, Request* request) {
  MutexLock lock(state.mutex);
  request->cancelled = true;
  if (state.queue.Remove(request))
    return state.completion.Post(request, Outcome::kCancelled, CallerLeftError());
  for (int slot = 0; slot < state.slots.size(); ++slot) {
    SlotUse& use = state.slots[slot];
    const auto left = [](const Request* one) { return one->cancelled; };
    if (use.abandoned && !use.batch.empty() &&
        std::all_of(use.batch.begin(), use.batch.end(), left))
      use.abandoned->Cancel();
  }
}

void Expiry::Start(const std::string& name) {
  thread_ = SpawnThread({absl::StrCat("t:", name), 0, {}}, [this] { Work(); });
}

// Sleeps until the earliest deadline. Whoever queues a later one does not wake it, so a stream of
// requests with deadlines far away costs one wake-up per deadline length, not one per request.
void Expiry::Work() {
  MutexLock lock(state_.mutex);
  for (;;) {
    CollectExpired(state_, state_.Now());
    if (stopping_) return;
    const TimePoint until = state_.expiry_sleeps_until = state_.queue.NextDeadline();
    if (until == TimePoint::max()) {
      state_.expiry.Wait(state_.mutex);
    } else {
      state_.expiry.WaitUntil(state_.mutex, until);
    }
    state_.expiry_sleeps_until = TimePoint::min();
  }
}

void Expiry::Stop() {
  {
    MutexLock lock(state_.mutex);
    stopping_ = true;
    state_.expiry.NotifyOne();
  }
  if (thread_.joinable()) thread_.join();
}

}  // namespace floe::server
