// Workers: the threads that take batches from the queue, and the slots on which they run them.
#pragma once

#include <thread>
#include <vector>

#include "server/scheduling/batch.h"
#include "server/scheduling/state.h"

namespace floe::server {

class Workers {
 public:
  explicit Workers(SchedulerState& state) : state_(state), batches_(state) {}
  ~Workers() { Join(); }

  // Returns when all threads are ready. Throws std::system_error.
  void Start();
  // Waits for their end: they go once the scheduler stops and nothing is left to run.
  void Join();
  // One batch, if one is due, on this thread.
  bool Step();
  // Runs the request on this thread, if load is low; false: nothing has changed.
  bool TryInline(Queued* request);
  // As Scheduler::TrimIdle.
  void TrimIdle(TimePoint now);

 private:
  void Work(int index);
  int TakeBatch(Batch* batch, int worker) ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.mutex);
  int WaitForBatch(Batch* batch, int worker) ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.mutex);
  void RunOn(int slot, absl::Span<Queued*> batch);
  // Marks the idle slot last used as running the batch.
  int TakeSlot(absl::Span<Queued* const> batch, BatchClose close, int worker, TimePoint now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.mutex);
  // Learns from the run and lets the next one have the slot.
  void ReleaseSlot(int slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.mutex);
  // Wakes who waits for an idle slot, or for the end.
  void SlotIsFree() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.mutex);

  SchedulerState& state_;
  BatchRunner batches_;
  int ready_ ABSL_GUARDED_BY(state_.mutex) = 0;
  std::vector<std::thread> threads_;
};

}  // namespace floe::server
