// Scheduler: admits the requests of one served version, batches them and runs them.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "server/scheduling/expiry.h"
#include "server/scheduling/large_requests.h"
#include "server/scheduling/state.h"
#include "server/scheduling/stats.h"
#include "server/scheduling/workers.h"

namespace floe::server {

// An idle worker takes what is queued at once, unless the limits name a timeout. At low load a
// quick request runs on the thread that brought it: while nothing is queued, a slot is idle, and
// either nothing runs or batches gain little (kInlineGain of workers.cc). The gain counts only
// while something runs: a request that finds the model idle has nobody to share a batch with.
//
// Threading: any thread may call Submit. It has threads of its own: the workers, one that ends late
// requests, and one that answers those. With no workers there are none, and Step() does the work.
// One class: requests go in, and the other methods end it or tell how its work goes on.
class Scheduler {
 public:
  using Options = SchedulerOptions;
  // Throws std::system_error where no thread can be made.
  Scheduler(std::unique_ptr<Executor> executor, Options options);
  ~Scheduler();  // Stop()
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // The request is answered exactly once, without a lock held: after a run, with what Bind said, or
  // - DEADLINE_EXCEEDED: it waited too long, ran too long alone, or has less time than is expected;
  // - CANCELLED: its caller left, which ends a run that nobody else waits for between two steps;
  // - `full_status` with RetryAfter: the queue is full;
  // - UNAVAILABLE: after Stop.
  // Nothing is refused for its expected time while a slot is idle and the queue empty. Where all
  // requests of a cost profile are refused so, one is taken now and then.
  void Submit(Request request);

  // Refuses new requests, finishes those it has (without workers: UNAVAILABLE) and ends its
  // threads. May be called again. Not from inside a request's `complete`.
  void Stop();
  // As Stop, but waits no longer than until `deadline` and a moment more. Then runs under way are
  // cancelled, and what waits is refused with UNAVAILABLE. False: some have not ended, and the
  // threads are there until they do. May be called again.
  bool StopBy(TimePoint deadline);
  // Nothing waits or runs. After StopBy: Stop need not wait.
  bool Idle() const;
  // The runs under way, for a log: "w0:m for 31 s, a caller's thread for 2 s".
  std::string RunsUnderWay(TimePoint now) const;

  SchedulerProgress Progress() const;
  // The runs that are stuck at `now` and were not named before.
  std::vector<SchedulerProgress::Run> NewlyStuck(TimePoint now);
  SchedulerStats Stats() const;
  // Of the stats what is counted of requests and runs, which takes no time to put together.
  SchedulerStats Counts() const;
  // What was asked of this model was refused before it could be submitted; for Stats.
  void CountRefused(const Inference& asked, absl::StatusCode code) {
    CountFailed(asked, absl::Status(code, ""));
  }
  Executor& executor() const { return *state_.executor; }

  // Gives back what slots keep between runs, of those idle for a minute at `now`, or for a second
  // when only the warm-up has used them. Called now and then.
  void TrimIdle(TimePoint now) { workers_.TrimIdle(now); }

  // For tests, without threads: ends expired and cancelled requests, then runs one batch if one is
  // due. True when it did anything.
  bool Step() { return workers_.Step(); }

 private:
  void CountFailed(const Inference& asked, const absl::Status& status) {
    AnswerCounts& counts = state_.completion.counts();
    counts.Add(&counts.requests().Of(asked), Outcome::kFailed, status);
  }
  void Enqueue(Queued* request);
  void Split(Queued* whole);

  mutable SchedulerState state_;
  Expiry expiry_;
  Workers workers_;
  LargeRequests large_requests_;
  Mutex stop_mutex_;  // one Stop at a time
};

}  // namespace floe::server
