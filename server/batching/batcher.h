// Batcher: the queue of one served version, its worker threads, and the timer that ends late and
// abandoned requests.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "server/batching/batch_queue.h"

namespace floe::server {

// How the work goes on, for the health probe.
struct BatcherProgress {
  size_t queued = 0;
  int running = 0;
  TimePoint waiting_since =
      TimePoint::max();  // start of the oldest unfinished work, queued or running
  TimePoint last_finished = TimePoint::min();
  Duration slowest = Duration::zero();  // of all runs so far, per as many rows as a batch may have
  double largest = 1;                   // running: the most rows, in batches
};
// No run finished for max(10 s, 20 x the slowest run) although work was there all that time. A run
// of more rows than a batch may take as many times longer.
bool IsStuck(const BatcherProgress& progress, TimePoint now);

// An idle worker takes what is queued at once, unless the limits name a timeout. When the queue is
// empty, a slot is idle and the request is cheap, Submit runs it on the calling thread instead.
//
// Every request is answered exactly once, without a lock held: after a run; DEADLINE_EXCEEDED when
// it waited too long; CANCELLED when its caller left; RESOURCE_EXHAUSTED when the queue is full;
// UNAVAILABLE after Stop; or with what Admit said. When a run of several requests fails, each runs
// once more alone, so that no request suffers for another.
//
// Threading: any thread may call Submit. Threads of its own: `threads` workers and one timer; with
// no workers there is no timer either, and Step() does the work.
class Batcher {
 public:
  struct Options {
    BatchQueue::Limits limits;
    int threads = 1;
    const Clock* clock =
        &Clock::Steady();  // must outlive the batcher; real time when there are threads
    std::string name;      // for messages and thread names
    Duration slowest = Duration::zero();  // of the warm-up's runs
  };
  Batcher(std::unique_ptr<BatchRunner> runner, Options options);
  ~Batcher();  // Stop()
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  void Submit(std::unique_ptr<InferRequest> request);

  // Refuses new requests, finishes those it has (without workers: UNAVAILABLE) and ends its
  // threads. May be called again. Not from inside a request's `done`.
  void Stop();

  BatcherProgress Progress() const;

  // Gives back what slots keep between runs, of those idle for a minute at `now`. Called now and
  // then.
  void TrimIdle(TimePoint now);

  // For tests, without threads: ends expired and cancelled requests, then runs one batch if one is
  // due. True when it did anything.
  bool Step();

 private:
  struct Ended {
    Task* task;
    absl::Status status;
  };

  void Enqueue(std::unique_ptr<Task> task, TimePoint now);
  bool TryRunInline(std::unique_ptr<Task>* task, TimePoint now);
  void Work();
  void KeepTime();
  int WaitForBatch(std::vector<Task*>* batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int TakeBatch(std::vector<Task*>* batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CollectExpired(TimePoint now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int TakeSlot(TimePoint now, absl::Span<Task* const> batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReleaseSlot(int slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int TakeIdle(TimePoint used_before) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SlotIsFree() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RunBatch(int slot, absl::Span<Task* const> batch);
  void DeliverRows(int slot, Task* task, int64_t first_row);
  bool DeliverEnded();
  void CancelQueued(Task* task);

  const std::unique_ptr<BatchRunner> runner_;
  const Options options_;
  mutable Mutex mutex_;
  CondVar work_, timer_, idle_;
  BatchQueue queue_ ABSL_GUARDED_BY(mutex_);
  std::vector<Ended> ended_
      ABSL_GUARDED_BY(mutex_);  // left the queue unrun; the timer answers them
  std::vector<Task*> expired_ ABSL_GUARDED_BY(mutex_);
  std::vector<int> idle_slots_ ABSL_GUARDED_BY(mutex_);  // last used on top: its memory is warm
  struct SlotUse {
    TimePoint started = TimePoint::max();     // max(): idle
    double batches = 1;                       // rows / max_rows, at least 1
    TimePoint idle_since = TimePoint::max();  // max(): never used, or trimmed since
  };
  std::vector<SlotUse> slots_ ABSL_GUARDED_BY(mutex_);
  int waiting_workers_ ABSL_GUARDED_BY(mutex_) = 0;
  TimePoint timer_sleeps_until_ ABSL_GUARDED_BY(mutex_) = TimePoint::min();  // min(): it is awake
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool timer_stop_ ABSL_GUARDED_BY(mutex_) = false;
  TimePoint last_finished_ ABSL_GUARDED_BY(mutex_) = TimePoint::min();
  Duration slowest_ ABSL_GUARDED_BY(mutex_);
  Mutex stop_mutex_;  // one Stop at a time
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(stop_mutex_);
  std::thread timer_thread_ ABSL_GUARDED_BY(stop_mutex_);
};

}  // namespace floe::server
