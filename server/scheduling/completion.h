// Completion: where callers get their answers.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "base/alarm_thread.h"
#include "base/mutex.h"
#include "server/scheduling/queue.h"
#include "server/scheduling/stats.h"

namespace floe::server {

// Made once: the threads that end requests need no memory for it.
const absl::Status& CallerLeftError();
const absl::Status& ExpiredError();

// Of a request that was to run, by its status.
Outcome OutcomeOf(const absl::Status& status);

// Counts what became of requests. Threading: any thread.
class AnswerCounts {
 public:
  // `cell`: of `requests`, where the request is counted too.
  void Add(RequestCounts::Cell* cell, Outcome outcome, const absl::Status& status, int more = 1);
  RequestCounts& requests() { return requests_; }
  void CopyTo(SchedulerStats* stats) const;

 private:
  std::array<std::atomic<uint64_t>, kOutcomes> outcomes_{};
  RequestCounts requests_;
  mutable Mutex mutex_;
  std::string last_internal_ ABSL_GUARDED_BY(mutex_);
};

// Answers requests that are over: in no queue and in no run. They are destroyed then.
// Threading: any thread, with any lock held for Post, without one for the rest.
class Completion {
 public:
  // `clock` outlives it.
  explicit Completion(const Clock* clock);
  ~Completion() { Stop(); }

  // Answers what is posted on this thread; without it, Drain does. Throws std::system_error.
  void Start(std::shared_ptr<AlarmThread> thread);

  // By the request's outcome and status; `outputs` count where that is OK.
  void Answer(Queued* request, Outputs outputs = {});
  void Answer(Queued* request, Outcome outcome, const absl::Status& status);
  // The same, later and elsewhere.
  void Post(Queued* request, Outcome outcome, const absl::Status& status);
  // Answers what was posted; false: there was nothing.
  bool Drain();

  // Answers what was posted, and needs the thread no more. May be called again.
  void Stop();
  AnswerCounts& counts() { return counts_; }
  const AnswerCounts& counts() const { return counts_; }

 private:
  const Clock& clock_;
  AnswerCounts counts_;
  Mutex mutex_;
  RequestList<&Queued::arrival_hook> ended_ ABSL_GUARDED_BY(mutex_);
  std::optional<Alarm> alarm_;
};

}  // namespace floe::server
