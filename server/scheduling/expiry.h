// Expiry: ends requests that are late or whose callers left. It never sends.
#pragma once

#include <string>
#include <thread>

#include "server/scheduling/state.h"

namespace floe::server {

// Ends the requests that are late.
void CollectExpired(SchedulerState& state, TimePoint now)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(state.mutex);

// Ends all that waits.
void RefuseQueued(SchedulerState& state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(state.mutex);

// The caller left, any time after the request was queued and before it is answered. For
// CancelToken's listener: it does not answer.
void Cancel(SchedulerState& state, Request* request);

// The thread that ends late requests in time, however busy the workers are.
class Expiry {
 public:
  explicit Expiry(SchedulerState& state) : state_(state) {}
  ~Expiry() { Stop(); }

  void Start(const std::string& name);  // throws std::system_error
  void Stop();

 private:
  void Work();

  SchedulerState& state_;
  bool stopping_ ABSL_GUARDED_BY(state_.mutex) = false;
  std::thread thread_;
};

}  // namespace floe::server
