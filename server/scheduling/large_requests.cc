// Starts and ends the requests that are computed in parts.
#include "server/scheduling/large_requests.h"

#include <memory>

#include "base/budget.h"

namespace floe::server {

void LargeRequests::StartWaiting() {
  state_.mutex.Lock();
  if (!starting_) {
    starting_ = true;
    while (Queued* const whole = state_.queue.StartWhole()) {
      state_.mutex.Unlock();
      Start(whole);
      state_.mutex.Lock();
    }
    starting_ = false;
  }
  state_.mutex.Unlock();
}

void LargeRequests::Start(Queued* whole) {
  std::shared_ptr<Join> join;
  const absl::Status made = CatchOutOfMemory([&] {
    join = std::make_shared<Join>(
        state_.options.limits.MaxRows(whole->binding), state_.options.workers() + 1, state_.memory,
        submit_, [this](std::unique_ptr<Queued> done, const absl::Status& status, Outputs outputs) {
          End(done.release(), status, outputs);
        });
    return absl::OkStatus();
  });
  if (!made.ok()) return End(whole, made, {});
  join->Start(std::unique_ptr<Queued>(whole));
}

void LargeRequests::End(Queued* whole, const absl::Status& status, Outputs outputs) {
  {
    MutexLock lock(state_.mutex);
    state_.queue.EndWhole(*whole);
    state_.idle.NotifyAll();
    state_.work.NotifyAll();
  }
  whole->status = status;
  whole->outcome = OutcomeOf(status);
  state_.completion.Answer(whole, outputs);
  StartWaiting();
}

}  // namespace floe::server
