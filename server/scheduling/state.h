// What the parts of a scheduler share, and the lock that guards it.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/memory_budget.h"
#include "base/mutex.h"
#include "base/recent_times.h"
#include "base/threads.h"
#include "server/executor/executor.h"
#include "server/scheduling/completion.h"
#include "server/scheduling/profile.h"
#include "server/scheduling/queue.h"

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
  // What each worker does before the constructor returns, on a slot of its own. The first run of a
  // thread is slow: its allocator's caches and its stack are not there yet. Null: nothing.
  std::function<void(int slot)> first_run;
  std::vector<MeasuredSignature> measured;                        // for Scheduler::Stats
  absl::StatusCode full_status = absl::StatusCode::kUnavailable;  // of refusals by the queue
  // The queue is full when its requests are expected to take its workers longer than this.
  Duration max_enqueued_time = Duration::max();

  int workers() const { return threads > 0 ? threads : 1; }
};

// A run, from the time its slot is taken.
struct SlotUse {
  TimePoint started = TimePoint::max();     // max(): the slot is idle
  TimePoint idle_since = TimePoint::max();  // max(): never used, or trimmed since
  double batches = 1;                       // rows / max_rows, at least 1
  int64_t rows = 0;
  const void* key = nullptr;             // Binding::key
  Duration measured = Duration::zero();  // Executor::Expect
  Duration expected = Duration::zero();
  int worker = -1;  // whose thread it is on; -1: a caller's
  bool failed = false;
  bool reported = false;                 // that it is stuck
  absl::Span<Request* const> batch;      // empty once the run is over
  std::optional<CancelToken> abandoned;  // of a run of several requests: all have left

  bool busy() const { return started != TimePoint::max(); }
};

// Of one run for the request, at least 1.
int64_t MaxRows(const Request& request, const SchedulerOptions& options);

// What each slot of an executor runs. Threading: the caller locks.
class SlotTable {
 public:
  explicit SlotTable(int slots);

  bool any_idle() const { return !idle_.empty(); }
  bool any_busy() const { return idle_.size() < slots_.size(); }
  // The slot last used, because its memory is warm; there is an idle one.
  int Take(TimePoint now);
  void Release(int slot, TimePoint now);
  SlotUse& operator[](int slot) { return slots_[slot]; }
  const SlotUse& operator[](int slot) const { return slots_[slot]; }
  int size() const { return static_cast<int>(slots_.size()); }
  // Of all runs under way, until they end.
  Duration Remaining(TimePoint now) const;

  // Takes an idle slot used before that time and not trimmed since; -1: there is none.
  int TakeUnused(TimePoint used_before);
  void ReturnTrimmed(int slot) { idle_.insert(idle_.begin(), slot); }

 private:
  std::vector<SlotUse> slots_;
  std::vector<int> idle_;  // last used at the end
};

// Callers whose requests made others' batches fail, each for tuning::kQuarantine. Of more than fit
// the oldest are forgotten. Threading: the caller locks.
class Quarantine {
 public:
  void Add(uint64_t principal, TimePoint now);
  bool Has(uint64_t principal, TimePoint now) const;

 private:
  struct Entry {
    uint64_t principal = 0;
    TimePoint until = TimePoint::min();
  };
  std::array<Entry, 64> entries_;
  TimePoint last_until_ = TimePoint::min();
};

// The slowest of the good runs, for a full batch. It fades: one slow run does not hide stuck ones
// for ever. Threading: the caller locks.
class SlowestRun {
 public:
  SlowestRun(Duration least, TimePoint now) : least_(least), slowest_(least), since_(now) {}
  void Note(Duration took, TimePoint now);
  Duration At(TimePoint now) const;

 private:
  const Duration least_;
  Duration slowest_;
  TimePoint since_;
};

struct SchedulerState {
  SchedulerState(std::unique_ptr<Executor> runs, SchedulerOptions how);

  // Marks the idle slot last used as running the batch.
  int TakeSlot(absl::Span<Request* const> batch, BatchClose close, int worker, TimePoint now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Learns from the run and lets the next one have the slot.
  void ReleaseSlot(int slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Wakes who waits for an idle slot, or for the end.
  void SlotIsFree() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Ends the requests that are late.
  void CollectExpired(TimePoint now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Something waits, runs, or is to come of a request that is computed in parts.
  bool Busy() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return slots.any_busy() || !queue.load().done();
  }
  TimePoint Now() const { return options.clock->Now(); }
  absl::Status StoppingError() const;

  const std::unique_ptr<Executor> executor;
  const SchedulerOptions options;
  const MemoryBudget memory;  // of the thread that made this; pays for outputs put together here
  Completion completion;

  mutable Mutex mutex;
  CondVar work;    // workers: something is queued, a slot is free, or the end is near
  CondVar expiry;  // there is an earlier deadline
  CondVar idle;    // who waits for the end: Busy() may have changed
  RequestQueue queue ABSL_GUARDED_BY(mutex);
  CostProfiles profiles ABSL_GUARDED_BY(mutex);
  Quarantine quarantine ABSL_GUARDED_BY(mutex);
  SlotTable slots ABSL_GUARDED_BY(mutex);
  SlowestRun slowest ABSL_GUARDED_BY(mutex);
  RecentTimes queue_waits ABSL_GUARDED_BY(mutex), run_times ABSL_GUARDED_BY(mutex);
  RunCounts counts ABSL_GUARDED_BY(mutex);
  TimePoint last_finished ABSL_GUARDED_BY(mutex) = TimePoint::min();
  TimePoint expiry_sleeps_until ABSL_GUARDED_BY(mutex) = TimePoint::min();  // min(): it is awake
  int waiting_workers ABSL_GUARDED_BY(mutex) = 0;
  bool stopping ABSL_GUARDED_BY(mutex) = false;
  std::atomic<bool> given_up{false};  // runs under way are to end
};

// Made once: the threads that end requests need no memory for it.
const absl::Status& CallerLeftError();
const absl::Status& ExpiredError();

// Of a request that was to run, by its status.
Outcome OutcomeOf(const absl::Status& status);

}  // namespace floe::server
