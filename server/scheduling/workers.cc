// The threads that take batches from the queue.
#include "server/scheduling/workers.h"

#include "absl/strings/str_cat.h"
#include "server/scheduling/expiry.h"
#include "server/scheduling/tuning.h"

namespace floe::server {

void Workers::Start() {
  ThreadTraits traits = state_.options.traits;
  for (int i = 0; i < state_.options.threads; ++i) {
    traits.name = absl::StrCat("w", i, ":", state_.options.name);
    threads_.push_back(SpawnThread(traits, [this, i] { Work(i); }));
  }
  MutexLock lock(state_.mutex);
  while (ready_ < state_.options.threads) state_.idle.Wait(state_.mutex);
}

void Workers::Join() {
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

int Workers::TakeBatch(Batch* batch, int worker) {
  if (state_.queue.load().empty() || !state_.slots.any_idle()) return -1;
  const TimePoint now = state_.Now();
  CollectExpired(state_, completion_, now);
  state_.queue.TakeBatch(now, batch);
  if (batch->requests.empty()) return -1;
  return state_.TakeSlot(batch->requests, batch->close, worker, now);
}

int Workers::WaitForBatch(Batch* batch, int worker) {
  for (;;) {
    if (const int slot = TakeBatch(batch, worker); slot >= 0) return slot;
    if (state_.stopping && state_.queue.load().empty() && !state_.joining) return -1;
    ++state_.waiting_workers;
    if (state_.queue.load().empty() || !state_.slots.any_idle()) {
      state_.work.Wait(state_.mutex);
    } else {
      state_.work.WaitUntil(state_.mutex, state_.queue.NextBatchTime());
    }
    --state_.waiting_workers;
  }
}

void Workers::Work(int index) {
  if (state_.options.first_run) state_.options.first_run(index);
  Batch batch;
  EndedRequests ended;
  state_.mutex.Lock();
  ++ready_;
  state_.idle.NotifyAll();
  for (int slot; (slot = WaitForBatch(&batch, index)) >= 0;) {
    // What a full batch left behind is another idle worker's.
    const bool more = !state_.queue.load().empty();
    if (more && state_.waiting_workers > 0 && state_.slots.any_idle()) state_.work.NotifyOne();
    state_.mutex.Unlock();
    batches_.Run(slot, absl::MakeSpan(batch.requests), &ended);
    batch.clear();
    state_.mutex.Lock();
    // A worker with a full queue is what throughput depends on: sending was a tenth of its time for
    // a network of 0.3 ms a row.
    const bool busy = !state_.queue.load().empty();
    state_.mutex.Unlock();
    if (!busy || ended.size() < tuning::kHandOverFrom || !completion_.TryPost(&ended))
      completion_.Send(&ended);
    state_.mutex.Lock();
    state_.ReleaseSlot(slot);
  }
  state_.work.NotifyAll();  // the queue is empty and stays so: the others may leave too
  state_.mutex.Unlock();
}

bool Workers::Step() {
  Batch batch;
  int slot;
  {
    MutexLock lock(state_.mutex);
    CollectExpired(state_, completion_, state_.Now());
    slot = TakeBatch(&batch, /*worker=*/-1);
  }
  const bool any_ended = completion_.Drain();
  if (slot < 0) return any_ended;
  EndedRequests ended;
  batches_.Run(slot, absl::MakeSpan(batch.requests), &ended);
  completion_.Send(&ended);
  MutexLock lock(state_.mutex);
  state_.ReleaseSlot(slot);
  return true;
}

}  // namespace floe::server
