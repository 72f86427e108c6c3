// Batcher: the queue of one served version, its worker threads, and the timer that ends late and
// abandoned requests.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/memory_budget.h"
#include "base/mutex.h"
#include "base/threads.h"
#include "server/batching/apart_list.h"
#include "server/batching/batch_queue.h"
#include "server/batching/batcher_stats.h"
#include "server/batching/bucket_book.h"

namespace floe::server {

// An idle worker takes what is queued at once, unless the limits name a timeout. When the queue is
// empty, a slot is idle and the request is cheap, Submit runs it on the calling thread instead.
//
// When a run of several requests fails or takes too long, each runs once more alone, and callers
// whose requests fail again have batches of their own for a second.
//
// Threading: any thread may call Submit. Threads of its own: `threads` workers and one timer, which
// also sends the answers of a batch when the worker has more to do; with no workers there is no
// timer either, and Step() does the work.
class Batcher {
 public:
  struct Options {
    BatchQueue::Limits limits;
    int threads = 1;
    const Clock* clock =
        &Clock::Steady();  // must outlive the batcher; real time when there are threads
    std::string name;      // for messages and thread names
    Duration slowest = Duration::zero();         // of the warm-up's runs
    Duration longest_run = Duration::max();      // one that takes longer is stopped
    Duration default_timeout = Duration::max();  // from Submit on, of requests without a deadline
    ThreadTraits traits;                         // of the workers; `name` above names them
    // What each worker does before the constructor returns, on a slot of its own: the first run of
    // a thread is slow, for its allocator's caches and its stack are not there yet. Null: nothing.
    std::function<void(int slot)> first_run;
    absl::StatusCode full_status = absl::StatusCode::kUnavailable;  // of refusals by the queue
    // The queue is full when its requests are expected to take its workers longer than this.
    Duration max_enqueued_time = Duration::max();
  };
  // Throws std::system_error where no thread can be made.
  Batcher(std::unique_ptr<BatchRunner> runner, Options options);
  ~Batcher();  // Stop()
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  // The request is answered exactly once, without a lock held: after a run, with what Admit said,
  // or
  // - DEADLINE_EXCEEDED: it waited too long, ran too long alone, or has less time than is expected;
  // - CANCELLED: its caller left, which ends a run that nobody else waits for between two steps;
  // - `full_status` with RetryAfter: the queue is full;
  // - UNAVAILABLE: after Stop.
  // Nothing is refused for what is expected while a slot is idle and the queue empty; of a kind
  // that is always refused so, one is taken now and then.
  void Submit(std::unique_ptr<InferRequest> request);

  // Refuses new requests, finishes those it has (without workers: UNAVAILABLE) and ends its
  // threads. May be called again. Not from inside a request's `done`.
  void Stop();
  // As Stop, but waits no longer than until `deadline` and a moment more: then runs under way are
  // told to end, and what waits is refused with UNAVAILABLE. False: some have not ended, and the
  // threads are there until they do. May be called again.
  bool StopBy(TimePoint deadline);
  // After StopBy: whether all runs have ended, so that Stop need not wait.
  bool Idle() const;
  // The runs under way, for a log: "w0:m for 31 s, a caller's thread for 2 s".
  std::string RunsUnderWay(TimePoint now) const;

  BatcherProgress Progress() const;
  // The runs that are stuck at `now` and were not named before.
  std::vector<BatcherProgress::Run> NewlyStuck(TimePoint now);
  BatcherStats Stats() const;

  // Gives back what slots keep between runs, of those idle for a minute at `now`. Called now and
  // then.
  void TrimIdle(TimePoint now);

  // For tests, without threads: ends expired and cancelled requests, then runs one batch if one is
  // due. True when it did anything.
  bool Step();

 private:
  // Tasks that have left the queue and run no more; the batcher's until they are sent.
  struct Ended {
    TaskList<&Task::arrival> tasks;
    size_t size = 0;

    void Add(Task* task) {
      tasks.PushBack(task);
      ++size;
    }
  };
  // Expected by what was measured at load.
  struct Measured {
    Duration share = Duration::zero();  // of a full run, for the request's rows
    Duration run = Duration::zero();    // of a run of its own, or its first slice's
    int64_t rows = 0;                   // of that run
  };
  struct SlotUse {
    TimePoint started = TimePoint::max();     // max(): idle
    double batches = 1;                       // rows / max_rows, at least 1
    TimePoint idle_since = TimePoint::max();  // max(): never used, or trimmed since
    Duration measured = Duration::zero();     // BatchRunner::Expect
    Duration expected = Duration::zero();
    int64_t rows = 0;
    const void* key = nullptr;
    bool failed = false;
    bool told = false;              // that it is stuck
    int worker = -1;                // whose thread it is on; -1: a caller's
    absl::Span<const Slice> batch;  // empty once the run is over
    std::optional<CancelToken> abandoned;
  };

  void Enqueue(Task* task, TimePoint now);
  Measured Measure(const Task& task) const;
  bool Admission(Task* task, const Measured& measured, TimePoint now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool OverfullInTime(const Task& task) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status ExpectInTime(Task* task, const Measured& measured, TimePoint now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Duration ExpectedTime(const Task& task, const BucketBook::Kind& kind, Duration own,
                        TimePoint now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static absl::Status Left();
  absl::Status Full() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Stopping() const;
  void Start();
  bool TryRunInline(Task* task, TimePoint now);
  void Work(int index);
  void KeepTime();
  int WaitForBatch(Batch* batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int TakeBatch(Batch* batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CollectExpired(TimePoint now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndUnrun(Task* task, Outcome outcome, const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int TakeSlot(TimePoint now, absl::Span<const Slice> batch, BatchClose close)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  BatcherProgress ProgressLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReleaseSlot(int slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Duration SlowestAt(TimePoint now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteRun(Duration took, TimePoint now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int TakeIdle(TimePoint used_before) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SlotIsFree() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Run(int slot, absl::Span<const Slice> batch, bool* too_long);
  void RunBatch(int slot, absl::Span<const Slice> batch, Ended* ended);
  void RunSingly(int slot, absl::Span<const Slice> batch);
  absl::Status StillWanted(const InferRequest& request) const;
  RunLimits LimitsOf(int slot, absl::Span<const Slice> batch);
  void SetApart(const Task& task, const absl::Status& status, bool too_long);
  absl::Status Gather(int slot, const Slice& slice, int64_t first_row);
  void Finish(int slot, absl::Span<const Slice> batch, const absl::Status& status, Ended* ended);
  void Deliver(int slot, const Slice& slice, int64_t first_row);
  void Count(Outcome outcome, int more) {
    outcomes_[static_cast<size_t>(outcome)].fetch_add(more, std::memory_order_relaxed);
  }
  void Tell(Task* task, absl::Span<const TensorView> outputs);
  void Answer(Task* task, Outcome outcome, const absl::Status& status);
  void Send(Ended* ended);
  bool HandOver(Ended* ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool SendEnded();
  bool BusyLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool AwaitIdle(TimePoint until);
  void GiveUp();
  void Cancelled(Task* task);

  // The slowest run counts half as much after so long without one as slow.
  static constexpr Duration kForgetHalf = std::chrono::minutes(10);

  const std::unique_ptr<BatchRunner> runner_;
  const Options options_;
  const MemoryBudget memory_;  // of the thread that made this; pays for outputs put together here
  mutable Mutex mutex_;
  CondVar work_, timer_, idle_;
  BatchQueue queue_ ABSL_GUARDED_BY(mutex_);
  BucketBook book_ ABSL_GUARDED_BY(mutex_);
  ApartList apart_ ABSL_GUARDED_BY(mutex_);
  uint64_t inline_runs_ ABSL_GUARDED_BY(mutex_) = 0, reruns_ ABSL_GUARDED_BY(mutex_) = 0,
                        stuck_runs_ ABSL_GUARDED_BY(mutex_) = 0;
  std::array<std::atomic<uint64_t>, kOutcomes> outcomes_{};  // by Outcome
  Ended ended_ ABSL_GUARDED_BY(mutex_);  // the timer sends them, while workers run the next batches
  std::vector<int> idle_slots_ ABSL_GUARDED_BY(mutex_);  // last used on top: its memory is warm
  std::vector<SlotUse> slots_ ABSL_GUARDED_BY(mutex_);
  int ready_workers_ ABSL_GUARDED_BY(mutex_) = 0, waiting_workers_ ABSL_GUARDED_BY(mutex_) = 0;
  TimePoint timer_sleeps_until_ ABSL_GUARDED_BY(mutex_) = TimePoint::min();  // min(): it is awake
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> given_up_{false};  // runs under way are to end
  bool timer_stop_ ABSL_GUARDED_BY(mutex_) = false;
  TimePoint last_finished_ ABSL_GUARDED_BY(mutex_) = TimePoint::min();
  Duration slowest_ ABSL_GUARDED_BY(mutex_);
  TimePoint slowest_since_ ABSL_GUARDED_BY(mutex_);
  Mutex gather_mutex_;  // a split task's outputs are allocated by one of its runs
  Mutex stop_mutex_;    // one Stop at a time
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(stop_mutex_);
  std::thread timer_thread_ ABSL_GUARDED_BY(stop_mutex_);
};

}  // namespace floe::server
