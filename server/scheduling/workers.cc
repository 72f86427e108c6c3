// Takes batches from the queue and runs them on slots: on threads of its own, or on a caller's.
#include "server/scheduling/workers.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/scheduling/expiry.h"

namespace floe::server {
namespace {

// While something runs, a quick request joins the queue where batches gain more than this.
constexpr double kInlineGain = 1.2;

}  // namespace

void Workers::Start() {
  ThreadTraits traits = state_.options.traits;
  threads_.reserve(state_.options.threads);  // a started thread must find its place
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

int Workers::TakeSlot(absl::Span<Queued* const> batch, BatchClose close, int worker,
                      TimePoint now) {
  const Queued& first = *batch[0];
  const int slot = state_.slots.Take();
  SlotUse& use = state_.slots[slot];
  use.started = now;
  use.rows = 0;
  use.worker = worker;
  use.failed = use.reported = false;
  use.batch = batch;
  use.abandoned.reset();
  use.work = state_.work_counts.Find(*first.asked);
  SignatureWork& work = state_.work_counts[use.work];
  for (Queued* request : batch) {
    use.rows += request->binding.rows;
    request->timings.queue = now - request->enqueued;
    state_.queue_waits.Add(request->timings.queue, now);
    work.queue_wait.Add(Seconds(request->timings.queue));
  }
  work.batch_rows.Add(static_cast<double>(use.rows));
  CostProfile& profile = state_.profiles.Of(first, *state_.executor);
  BatchCounts& counted = profile.counts;
  ++counted.batches;
  counted.requests += batch.size();
  counted.rows += static_cast<uint64_t>(use.rows);
  counted.padded_rows +=
      static_cast<uint64_t>(state_.executor->RunRows(first, use.rows) - use.rows);
  ++counted.closed[static_cast<size_t>(close)];

  use.batches = std::max(
      1.0, static_cast<double>(use.rows) / static_cast<double>(state_.options.limits.max_rows));
  use.key = first.binding.key;
  use.estimated = state_.executor->Expect(first, use.rows);
  use.expected = profile.Expect(use.estimated, use.rows);
  if (batch.size() > 1) use.abandoned.emplace();
  return slot;
}

void Workers::ReleaseSlot(int slot) {
  const TimePoint now = state_.Now();
  SlotUse& use = state_.slots[slot];
  const Duration took = now - use.started;
  if (!use.failed) {  // how long a run is kept until it is given up says nothing of good ones
    state_.slowest.Note(std::chrono::duration_cast<Duration>(took / use.batches), now);
    if (CostProfile* profile = state_.profiles.Find(use.key); profile != nullptr)
      profile->Learn(use.estimated, use.rows, took);
  }
  state_.run_times.Add(took, now);
  SignatureWork& work = state_.work_counts[use.work];
  work.run.Add(Seconds(took));
  work.by_rows.Add(use.rows, Seconds(took));
  state_.last_finished = now;
  use.started = TimePoint::max();
  use.idle_since = now;
  state_.slots.Release(slot);
  SlotIsFree();
}

void Workers::SlotIsFree() {
  if (!state_.queue.load().empty() && state_.waiting_workers > 0) state_.work.NotifyOne();
  if (!state_.stopping) return;
  state_.idle.NotifyAll();
  state_.work.NotifyAll();  // those that waited for the slot, should the queue be empty by now
}

void Workers::TrimIdle(TimePoint now) {
  state_.mutex.Lock();
  for (int slot; (slot = state_.slots.TakeUnused(now - SlotTable::kTrimAfter)) >= 0;) {
    state_.mutex.Unlock();
    state_.executor->Trim(slot);
    state_.mutex.Lock();
    state_.slots.ReturnTrimmed(slot);
    SlotIsFree();
  }
  state_.mutex.Unlock();
}

int Workers::TakeBatch(Batch* batch, int worker) {
  if (state_.queue.load().empty() || !state_.slots.any_idle()) return -1;
  const TimePoint now = state_.Now();
  CollectExpired(state_, now);
  state_.queue.TakeBatch(now, batch);
  if (batch->requests.empty()) return -1;
  return TakeSlot(batch->requests, batch->close, worker, now);
}

int Workers::WaitForBatch(Batch* batch, int worker) {
  for (;;) {
    if (const int slot = TakeBatch(batch, worker); slot >= 0) return slot;
    if (state_.stopping && state_.queue.load().done()) return -1;
    ++state_.waiting_workers;
    if (state_.queue.load().empty() || !state_.slots.any_idle()) {
      state_.work.Wait(state_.mutex);
    } else {
      state_.work.WaitUntil(state_.mutex, state_.queue.NextBatchTime());
    }
    --state_.waiting_workers;
  }
}

void Workers::RunOn(int slot, absl::Span<Queued*> batch) {
  batches_.Run(slot, batch);
  MutexLock lock(state_.mutex);
  ReleaseSlot(slot);
}

void Workers::Work(int index) {
  if (state_.options.first_run) state_.options.first_run(index);
  Batch batch;
  state_.mutex.Lock();
  ++ready_;
  state_.idle.NotifyAll();
  for (int slot; (slot = WaitForBatch(&batch, index)) >= 0;) {
    // What a full batch left behind is another idle worker's.
    const bool more = !state_.queue.load().empty();
    if (more && state_.waiting_workers > 0 && state_.slots.any_idle()) state_.work.NotifyOne();
    state_.mutex.Unlock();
    RunOn(slot, absl::MakeSpan(batch.requests));
    batch.clear();
    state_.mutex.Lock();
  }
  state_.work.NotifyAll();  // the queue is empty and stays so: the others may leave too
  state_.mutex.Unlock();
}

bool Workers::Step() {
  Batch batch;
  int slot;
  {
    MutexLock lock(state_.mutex);
    CollectExpired(state_, state_.Now());
    slot = TakeBatch(&batch, /*worker=*/-1);
  }
  const bool any_ended = state_.completion.Drain();
  if (slot < 0) return any_ended;
  RunOn(slot, absl::MakeSpan(batch.requests));
  return true;
}

bool Workers::TryInline(Queued* request) {
  const Binding& binding = request->binding;
  const absl::Span<Queued*> batch(&request, 1);
  int slot;
  {
    MutexLock lock(state_.mutex);
    // A queued request was here first, so it must not be overtaken.
    if (state_.stopping || !state_.queue.load().empty() || !state_.slots.any_idle()) return false;
    if (state_.slots.any_busy() && binding.batch_gain > kInlineGain) return false;
    slot = TakeSlot(batch, binding.unbatchable ? BatchClose::kUnbatchable : BatchClose::kIdle,
                    /*worker=*/-1, request->enqueued);
    ++state_.counts.inline_runs;
  }
  RunOn(slot, batch);
  return true;
}

}  // namespace floe::server
