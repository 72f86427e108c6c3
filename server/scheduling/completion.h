// Completion: where callers get their answers.
#pragma once

#include <array>
#include <atomic>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "server/scheduling/queue.h"
#include "server/scheduling/stats.h"

namespace floe::server {

// Requests that are over: in no queue and in no run.
using EndedRequests = RequestList<&Request::arrival_hook>;

// Requests are reported (`complete`) on the thread that has their outputs, and sent there too, or,
// where that thread has more to do, on one of its own. Threading: any thread, with any lock held
// for Post, without one for the rest.
class Completion {
 public:
  Completion() = default;
  ~Completion() { Stop(); }

  // Its thread; without it, Drain does the work. Throws std::system_error.
  void Start(const std::string& name);

  // Reports what came of the request; it is yet to be sent.
  void Report(Request* request, Outputs outputs);
  // Reports those that are not, sends all and destroys them.
  void Send(EndedRequests* ended);
  void Answer(Request* request, Outcome outcome, const absl::Status& status);

  // The same, later and elsewhere.
  void Post(Request* request, Outcome outcome, const absl::Status& status);
  // False: its thread is busy, and nothing has changed.
  bool TryPost(EndedRequests* ended);
  // Sends what was posted; false: there was nothing.
  bool Drain();

  // Sends what was posted and ends the thread. May be called again.
  void Stop();
  uint64_t count(Outcome outcome) const {
    return counts_[static_cast<size_t>(outcome)].load(std::memory_order_relaxed);
  }
  // A request that was refused before it came to the scheduler counts as failed.
  void CountRefused(absl::StatusCode code) { Count(Outcome::kFailed, code, 1); }
  StatusCounts status_counts() const;
  std::string last_internal_error() const;  // "" when there was none

 private:
  void Count(Outcome outcome, absl::StatusCode code, int more);
  void Work();

  std::array<std::atomic<uint64_t>, kOutcomes> counts_{};      // by Outcome
  std::array<std::atomic<uint64_t>, kStatusCodes> by_code_{};  // by absl::StatusCode
  mutable Mutex mutex_;
  CondVar posted_;
  EndedRequests ended_ ABSL_GUARDED_BY(mutex_);
  std::string last_internal_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace floe::server
