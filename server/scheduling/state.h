// What the parts of a scheduler share, and the lock that guards it.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/alarm_thread.h"
#include "base/memory_budget.h"
#include "base/mutex.h"
#include "base/recent_times.h"
#include "base/threads.h"
#include "server/executor/executor.h"
#include "server/scheduling/completion.h"
#include "server/scheduling/profile.h"
#include "server/scheduling/queue.h"

namespace floe::server {

// The threads that end what workers do not: late requests, and the answers to what was taken out of
// a queue. They do little, so many schedulers share them.
struct EndThreads {
  AlarmThread expiry{"expiry"}, completion{"completion"};
};

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
  std::vector<SignatureEstimate> estimates;                       // for Scheduler::Stats
  absl::StatusCode full_status = absl::StatusCode::kUnavailable;  // of refusals by the queue
  std::shared_ptr<EndThreads> end_threads;                        // null: its own
  // The queue is full when its requests are expected to take its workers longer than this.
  Duration max_enqueued_time = Duration::max();

  int workers() const { return threads > 0 ? threads : 1; }
};

// A run, from the time its slot is taken.
struct SlotUse {
  TimePoint started = TimePoint::max();     // max(): the slot is idle
  TimePoint idle_since = TimePoint::max();  // max(): trimmed since
  double batches = 1;                       // rows / max_rows, at least 1
  int64_t rows = 0;
  const void* key = nullptr;              // Binding::key
  Duration estimated = Duration::zero();  // Executor::Expect
  Duration expected = Duration::zero();
  int worker = -1;  // whose thread it is on; -1: a caller's
  size_t work = 0;  // in WorkCounts
  bool failed = false;
  bool reported = false;                 // that it is stuck
  absl::Span<Queued* const> batch;       // empty once the run is over
  std::optional<CancelToken> abandoned;  // of a run of several requests: all have left

  bool busy() const { return started != TimePoint::max(); }
};

// What each slot of an executor runs. Threading: the caller locks.
class SlotTable {
 public:
  // A slot that is idle for so long gives back its memory. One that only the warm-up has used does
  // so sooner: of many models that are loaded at once, few are asked at once.
  static constexpr Duration kTrimAfter = std::chrono::minutes(1);
  static constexpr Duration kTrimUnaskedAfter = std::chrono::seconds(1);

  // The warm-up has used them all until `now`.
  SlotTable(int slots, TimePoint now) : slots_(slots) {
    for (int slot = slots - 1; slot >= 0; --slot) {
      slots_[slot].idle_since = now - (kTrimAfter - kTrimUnaskedAfter);
      idle_.push_back(slot);
    }
  }

  bool any_idle() const { return !idle_.empty(); }
  bool any_busy() const { return idle_.size() < slots_.size(); }
  SlotUse& operator[](int slot) { return slots_[slot]; }
  const SlotUse& operator[](int slot) const { return slots_[slot]; }
  int size() const { return static_cast<int>(slots_.size()); }

  // The slot last used, because its memory is warm; there is an idle one.
  int Take() {
    const int slot = idle_.back();
    idle_.pop_back();
    return slot;
  }
  void Release(int slot) { idle_.push_back(slot); }
  // Takes an idle slot used before that time and not trimmed since; -1: there is none.
  int TakeUnused(TimePoint used_before) {
    const auto found = std::find_if(idle_.begin(), idle_.end(), [&](int slot) {
      return slots_[slot].idle_since <= used_before;
    });
    if (found == idle_.end()) return -1;
    const int slot = *found;
    idle_.erase(found);
    slots_[slot].idle_since = TimePoint::max();
    return slot;
  }
  void ReturnTrimmed(int slot) { idle_.insert(idle_.begin(), slot); }

  // Of all runs under way, until they end.
  Duration Remaining(TimePoint now) const {
    Duration remaining = Duration::zero();
    for (const SlotUse& use : slots_)
      if (use.busy()) remaining += std::max(Duration::zero(), use.started + use.expected - now);
    return remaining;
  }

 private:
  std::vector<SlotUse> slots_;
  std::vector<int> idle_;  // last used at the end
};

// Callers whose requests made others' batches fail, each for a moment. Of more than fit the oldest
// are forgotten. Threading: the caller locks.
class Quarantine {
 public:
  void Add(uint64_t principal, TimePoint now) {
    auto place = std::find_if(entries_.begin(), entries_.end(),
                              [&](const Entry& entry) { return entry.principal == principal; });
    if (place == entries_.end())
      place = std::min_element(entries_.begin(), entries_.end(),
                               [](const Entry& a, const Entry& b) { return a.until < b.until; });
    last_until_ = now + kFor;
    *place = {principal, last_until_};
  }
  bool Has(uint64_t principal, TimePoint now) const {
    if (principal == 0 || now >= last_until_) return false;
    return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
      return entry.principal == principal && now < entry.until;
    });
  }

 private:
  static constexpr Duration kFor = std::chrono::seconds(1);
  struct Entry {
    uint64_t principal = 0;
    TimePoint until = TimePoint::min();
  };
  std::array<Entry, 64> entries_;
  TimePoint last_until_ = TimePoint::min();
};

struct SchedulerState {
  SchedulerState(std::unique_ptr<Executor> runs, SchedulerOptions how)
      : executor(std::move(runs)),
        options(std::move(how)),
        memory(MemoryScope::Current() == nullptr ? MemoryBudget() : *MemoryScope::Current()),
        completion(options.clock),
        queue(options.limits),
        slots(executor->slots(), options.clock->Now()),
        slowest(options.slowest, options.clock->Now()) {}

  // Something waits, runs, or is to come of a request that is computed in parts.
  bool Busy() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return slots.any_busy() || !queue.load().done();
  }
  TimePoint Now() const { return options.clock->Now(); }
  absl::Status StoppingError() const {
    return absl::UnavailableError(absl::StrCat("model '", options.name, "' is being stopped"));
  }

  const std::unique_ptr<Executor> executor;
  const SchedulerOptions options;
  const MemoryBudget memory;  // of the thread that made this; pays for outputs put together here
  Completion completion;

  mutable Mutex mutex;
  CondVar work;  // workers: something is queued, a slot is free, or the end is near
  CondVar idle;  // who waits for the end: Busy() may have changed
  RequestQueue queue ABSL_GUARDED_BY(mutex);
  CostProfiles profiles ABSL_GUARDED_BY(mutex);
  Quarantine quarantine ABSL_GUARDED_BY(mutex);
  SlotTable slots ABSL_GUARDED_BY(mutex);
  SlowestRun slowest ABSL_GUARDED_BY(mutex);
  RecentTimes queue_waits ABSL_GUARDED_BY(mutex), run_times ABSL_GUARDED_BY(mutex);
  RunCounts counts ABSL_GUARDED_BY(mutex);
  WorkCounts work_counts ABSL_GUARDED_BY(mutex);
  TimePoint last_finished ABSL_GUARDED_BY(mutex) = TimePoint::min();
  int waiting_workers ABSL_GUARDED_BY(mutex) = 0;
  bool stopping ABSL_GUARDED_BY(mutex) = false;
  std::atomic<bool> given_up{false};  // runs under way are to end
};

}  // namespace floe::server
