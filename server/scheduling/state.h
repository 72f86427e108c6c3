// What the parts of a scheduler share, and the lock that guards it.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/memory_budget.h"
#include "base/mutex.h"
#include "base/recent_times.h"
#include "base/threads.h"
#include "server/executor/executor.h"
#include "server/scheduling/admission.h"
#include "server/scheduling/profile.h"
#include "server/scheduling/quarantine.h"
#include "server/scheduling/queue.h"
#include "server/scheduling/slots.h"

namespace floe::server {

struct SchedulerOptions {
  RequestQueue::Limits limits;
  int threads = 1;
  const Clock* clock =
      &Clock::Steady();  // must outlive the scheduler; real time when there are threads
  std::string name;      // for messages and thread names
  Duration slowest = Duration::zero();         // of the warm-up's runs
  Duration longest_run = Duration::max();      // one that takes longer is stopped
  Duration default_timeout = Duration::max();  // from Submit on, of requests without a deadline
  ThreadTraits traits;                         // of the workers; `name` above names them
  // What each worker does before the constructor returns, on a slot of its own: the first run of
  // a thread is slow, for its allocator's caches and its stack are not there yet. Null: nothing.
  std::function<void(int slot)> first_run;
  std::vector<MeasuredSignature> measured;                        // for Scheduler::Stats
  absl::StatusCode full_status = absl::StatusCode::kUnavailable;  // of refusals by the queue
  // The queue is full when its requests are expected to take its workers longer than this.
  Duration max_enqueued_time = Duration::max();

  int workers() const { return threads > 0 ? threads : 1; }
};

struct SchedulerState {
  SchedulerState(std::unique_ptr<Executor> runs, SchedulerOptions how);

  // Marks the idle slot last used as running the batch.
  int TakeSlot(absl::Span<Request* const> batch, BatchClose close, int worker, TimePoint now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Learns from the run and lets the next one have the slot.
  void ReleaseSlot(int slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void SlotIsFree() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Takes a request that waits out of its queue; false: it does not wait (any more).
  bool Remove(Request* request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  TimePoint NextDeadline() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return std::min(queue.NextDeadline(), large.NextDeadline());
  }
  // Something waits, runs, or is to come of a request that is computed in parts.
  bool Busy() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return slots.any_busy() || !queue.load().empty() || joining;
  }
  TimePoint Now() const { return options.clock->Now(); }
  absl::Status StoppingError() const;

  const std::unique_ptr<Executor> executor;
  const SchedulerOptions options;
  const MemoryBudget memory;  // of the thread that made this; pays for outputs put together here

  mutable Mutex mutex;
  CondVar work;    // workers: something is queued, a slot is free, or the end is near
  CondVar expiry;  // there is an earlier deadline
  CondVar idle;    // who waits for the end: Busy() may have changed
  RequestQueue queue ABSL_GUARDED_BY(mutex);
  // Large requests whose turn has not come: one at a time is computed in parts, so that only its
  // inputs and outputs are held whole. What waits here is held in `queue`, too.
  RequestQueue large ABSL_GUARDED_BY(mutex);
  ProfileBook profiles ABSL_GUARDED_BY(mutex);
  Quarantine quarantine ABSL_GUARDED_BY(mutex);
  SlotTable slots ABSL_GUARDED_BY(mutex);
  SlowestRun slowest ABSL_GUARDED_BY(mutex);
  RecentTimes queue_waits ABSL_GUARDED_BY(mutex), run_times ABSL_GUARDED_BY(mutex);
  TimePoint last_finished ABSL_GUARDED_BY(mutex) = TimePoint::min();
  TimePoint expiry_sleeps_until ABSL_GUARDED_BY(mutex) = TimePoint::min();  // min(): it is awake
  int waiting_workers ABSL_GUARDED_BY(mutex) = 0;
  bool joining ABSL_GUARDED_BY(mutex) = false;  // a large request is being computed
  uint64_t inline_runs ABSL_GUARDED_BY(mutex) = 0, reruns ABSL_GUARDED_BY(mutex) = 0,
                       stuck_runs ABSL_GUARDED_BY(mutex) = 0;
  bool stopping ABSL_GUARDED_BY(mutex) = false;
  std::atomic<bool> given_up{false};  // runs under way are to end
};

// Made once: the threads that end requests need no memory for it.
const absl::Status& CallerLeftError();
const absl::Status& ExpiredError();

// Of a request that was to run, by its status.
Outcome OutcomeOf(const absl::Status& status);

}  // namespace floe::server
