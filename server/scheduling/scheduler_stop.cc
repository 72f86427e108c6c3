// Ends a scheduler: waits for its runs, and cancels them when it has waited long enough.
#include <memory>

#include "server/request/tuning.h"
#include "server/scheduling/scheduler.h"

namespace floe::server {
namespace {

// Workers finish what is queued; real time.
bool AwaitIdle(SchedulerState& state, TimePoint until) {
  MutexLock lock(state.mutex);
  while (state.Busy())
    if (!state.idle.WaitUntil(state.mutex, until)) return !state.Busy();
  return true;
}

// Runs under way are cancelled, and what waits is refused.
void GiveUp(SchedulerState& state) {
  std::vector<std::shared_ptr<CancelToken>> runs;
  {
    MutexLock lock(state.mutex);
    state.given_up = true;
    RefuseQueued(state);
    for (int slot = 0; slot < state.slots.size(); ++slot) {
      SlotUse& use = state.slots[slot];
      if (use.abandoned) use.abandoned->Cancel();
      if (use.busy() && use.batch.size() == 1) runs.push_back(use.batch[0]->cancel);
    }
  }
  for (const auto& run : runs)
    if (run != nullptr) run->Cancel();  // its listener locks
}

}  // namespace

void Scheduler::Stop() { (void)StopBy(TimePoint::max()); }

bool Scheduler::Idle() const {
  MutexLock lock(state_.mutex);
  return !state_.Busy();
}

bool Scheduler::StopBy(TimePoint deadline) {
  MutexLock stop_lock(stop_mutex_);
  {
    MutexLock lock(state_.mutex);
    state_.stopping = true;
    state_.queue.StopWaiting();
    state_.work.NotifyAll();
  }
  if (state_.options.threads == 0) {
    GiveUp(state_);
    while (state_.completion.Drain()) {
    }
  } else if (deadline < TimePoint::max() && !AwaitIdle(state_, deadline)) {
    GiveUp(state_);
    if (!AwaitIdle(state_, Clock::Steady().Now() + tuning::kLastStep)) return false;
  }
  workers_.Join();
  {
    MutexLock lock(state_.mutex);
    while (state_.slots.any_busy()) state_.idle.Wait(state_.mutex);  // on callers' threads
  }
  expiry_.Stop();
  state_.completion.Stop();
  return true;
}

}  // namespace floe::server
