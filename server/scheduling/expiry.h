// Expiry: ends requests that are late or whose callers left. It never sends.
#pragma once

#include <memory>
#include <optional>

#include "base/alarm_thread.h"
#include "server/scheduling/state.h"

namespace floe::server {

// Ends the requests that are late.
void CollectExpired(SchedulerState& state, TimePoint now)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(state.mutex);

// Ends all that waits.
void RefuseQueued(SchedulerState& state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(state.mutex);

// The caller left, any time after the request was queued and before it is answered. For
// CancelToken's listener: it does not answer.
void Cancel(SchedulerState& state, Queued* request);

// Ends late requests in time, however busy the workers are. Threading: Wake with the state's lock;
// Start and Stop one at a time.
class Expiry {
 public:
  explicit Expiry(SchedulerState& state) : state_(state) {}

  // Until then nothing is ended. Throws std::system_error.
  void Start(std::shared_ptr<AlarmThread> thread);
  void Stop() {
    if (alarm_) alarm_->Stop();  // it stays: Ring may be under way, and uses it
  }
  // A request with this deadline waits now. The caller, who knows the state by another name, locks.
  void Wake(TimePoint deadline) ABSL_NO_THREAD_SAFETY_ANALYSIS;

 private:
  void Ring();

  SchedulerState& state_;
  std::optional<Alarm> alarm_;
  TimePoint alarm_at_ ABSL_GUARDED_BY(state_.mutex) = TimePoint::min();
};

}  // namespace floe::server
