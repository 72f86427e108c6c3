#include "server/batching/batcher.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/retry_after.h"

namespace floe::server {
namespace {

// The wait may be longer by one part in so many. Under lasting overload a queue stays as long as it
// is allowed to be: at the very edge, all answers come a little too late for callers that count
// their way through the network.
constexpr int kWaitMargin = 4;

// Fewer answers are sent by the time that another thread wakes.
constexpr size_t kHandOverFrom = 4;

// Made once: the threads that end requests need no memory for it.
absl::Status Late() {
  static const absl::Status late =
      absl::DeadlineExceededError("the deadline passed while the request waited for its run");
  return late;
}

// Estimates for longer are worth little.
constexpr Duration kLongestRetry = std::chrono::seconds(10);

thread_local int this_worker = -1;

double Millis(Duration d) { return std::chrono::duration<double, std::milli>(d).count(); }

}  // namespace

Batcher::Batcher(std::unique_ptr<BatchRunner> runner, Options options)
    : runner_(std::move(runner)),
      options_(std::move(options)),
      memory_(MemoryScope::Current() == nullptr ? MemoryBudget() : *MemoryScope::Current()),
      queue_(options_.limits),
      slots_(runner_->slots()),
      slowest_(options_.slowest),
      slowest_since_(options_.clock->Now()) {
  for (int slot = runner_->slots() - 1; slot >= 0; --slot) idle_slots_.push_back(slot);
  (void)Late();
  (void)Left();
  try {
    Start();
  } catch (...) {
    Stop();
    throw;
  }
}

void Batcher::Start() {
  MutexLock lock(stop_mutex_);
  ThreadTraits traits = options_.traits;
  for (int i = 0; i < options_.threads; ++i) {
    traits.name = absl::StrCat("w", i, ":", options_.name);
    threads_.push_back(SpawnThread(traits, [this, i] { Work(i); }));
  }
  // Late requests are answered in time however busy the model's CPUs are.
  if (options_.threads > 0)
    timer_thread_ = SpawnThread({absl::StrCat("t:", options_.name), 0, {}}, [this] { KeepTime(); });
  MutexLock ready_lock(mutex_);
  while (ready_workers_ < options_.threads) idle_.Wait(mutex_);
}

Batcher::~Batcher() { Stop(); }

void Batcher::Submit(std::unique_ptr<InferRequest> request) {
  Task* const task = std::make_unique<Task>().release();  // until it is answered
  task->request = std::move(request);
  const TimePoint now = options_.clock->Now();
  const CancelToken* cancel = task->request->cancel.get();
  if (cancel != nullptr && cancel->cancelled()) return Answer(task, Outcome::kCancelled, Left());
  if (task->request->deadline == TimePoint::max() && options_.default_timeout < Duration::max())
    task->request->deadline = now + options_.default_timeout;
  if (task->request->deadline <= now) return Answer(task, Outcome::kExpired, Late());
  const absl::Status admitted = CatchOutOfMemory([&] { return runner_->Admit(task); });
  if (!admitted.ok()) return Answer(task, Outcome::kFailed, admitted);
  if (task->cheap && TryRunInline(task, now)) return;
  Enqueue(task, now);
}

bool Batcher::TryRunInline(Task* task, TimePoint now) {
  if (task->rows > options_.limits.max_rows) return false;
  const Slice slice{task, 0, task->rows};
  const absl::Span<const Slice> batch(&slice, 1);
  int slot;
  {
    MutexLock lock(mutex_);
    // A queued request was here first, so it must not be overtaken.
    if (stopping_ || !queue_.empty() || idle_slots_.empty()) return false;
    slot = TakeSlot(now, batch, task->alone ? BatchClose::kAlone : BatchClose::kIdle);
    ++inline_runs_;
  }
  Ended ended;
  RunBatch(slot, batch, &ended);
  Send(&ended);
  MutexLock lock(mutex_);
  ReleaseSlot(slot);
  return true;
}

Batcher::Measured Batcher::Measure(const Task& task) const {
  const int64_t most = options_.limits.max_rows;
  const int64_t full =
      std::max<int64_t>(1, task.max_rows == 0 ? most : std::min(task.max_rows, most));
  Measured measured;
  measured.rows = task.splittable ? std::min(task.rows, full) : task.rows;
  measured.run = runner_->Expect(task, measured.rows);
  measured.share = measured.run;
  if (task.alone && task.rows <= full) return measured;
  const double runs = static_cast<double>(task.rows) / static_cast<double>(full);
  measured.share = std::chrono::duration_cast<Duration>(runner_->Expect(task, full) * runs);
  return measured;
}

// How long until the answer of a request of so much work: what runs and waits is counted as if all
// of it ran in full batches. Its own batch is answered as a whole, and may have filled up meanwhile
// as batches of its kind did of late, though not with more than what comes in while it waits.
Duration Batcher::ExpectedTime(const Task& task, const BucketBook::Kind& kind, Duration own,
                               TimePoint now) const {
  const Duration queued = queue_.WorkAhead(task);
  Duration running = Duration::zero();
  for (const SlotUse& slot : slots_)
    if (slot.started != TimePoint::max())
      running += std::max(Duration::zero(), slot.started + slot.expected - now);
  const int threads = std::max(1, options_.threads);
  const Duration batch =
      std::clamp(kind.usual_run(), own, std::max(own, running + 2 * queued + own));
  if (batch <= Duration::zero()) return Duration::zero();
  const auto batches = (queued + own + batch - Duration(1)) / batch;
  const Duration wait = running / threads + (batches - 1) / threads * batch;
  return wait + wait / kWaitMargin + batch;
}

// OK: the request may queue.
absl::Status Batcher::ExpectInTime(Task* task, const Measured& measured, TimePoint now) {
  BucketBook::Kind& kind = book_.Of(*task, *runner_);
  task->work = kind.Expect(measured.share, task->rows);
  task->run = kind.Expect(measured.run, measured.rows);
  const TimePoint deadline = task->request->deadline;
  if (deadline == TimePoint::max() || (queue_.empty() && !idle_slots_.empty()))
    return absl::OkStatus();
  const Duration own = std::max(task->work, task->run);
  const Duration need = ExpectedTime(*task, kind, own, now);
  if (need <= deadline - now || kind.MayProbe(now)) return absl::OkStatus();
  return absl::DeadlineExceededError(absl::StrCat(
      "refused: the deadline is in ", Millis(deadline - now), " ms, and with ", queue_.size(),
      " requests waiting model '", options_.name, "' may take ", Millis(need), " ms"));
}

void Batcher::Enqueue(Task* task, TimePoint now) {
  CancelToken* cancel = task->request->cancel.get();
  const Measured measured = Measure(*task);
  // Set before the task is queued: afterwards a worker may finish and free it at any moment. A
  // listener that fires before Push finds nothing to remove; the check under the lock in Admission
  // makes up for that.
  if (cancel != nullptr) cancel->SetListener([this, task] { Cancelled(task); });
  const TimePoint deadline = task->request->deadline;
  bool queued = false, wake_worker = false, wake_timer = false;
  {
    MutexLock lock(mutex_);
    const auto admit = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {  // mutex_ is held
      queued = Admission(task, measured, now);
      return absl::OkStatus();
    };
    if (absl::Status admitted = CatchOutOfMemory(admit); !admitted.ok()) {
      task->outcome = Outcome::kFailed;
      task->failed = std::move(admitted);
    }
    wake_worker = waiting_workers_ > 0 && !idle_slots_.empty();
    wake_timer = deadline < timer_sleeps_until_;
  }
  if (!queued) return Answer(task, task->outcome, task->failed);
  if (wake_worker) work_.NotifyOne();
  if (wake_timer) timer_.NotifyOne();
}

// Queues the task; false, with its outcome, when it may not.
bool Batcher::Admission(Task* task, const Measured& measured, TimePoint now) {
  const auto refuse = [task](Outcome outcome, absl::Status status) {
    task->outcome = outcome;
    task->failed = std::move(status);
    return false;
  };
  const CancelToken* cancel = task->request->cancel.get();
  if (stopping_) return refuse(Outcome::kRefusedStopped, Stopping());
  if (cancel != nullptr && cancel->cancelled()) return refuse(Outcome::kCancelled, Left());
  if (absl::Status late = ExpectInTime(task, measured, now); !late.ok())
    return refuse(Outcome::kRefusedLate, std::move(late));
  if (apart_.Has(task->request->caller, now)) task->apart = task->request->caller;
  if (!OverfullInTime(*task) && queue_.Push(task, now)) return true;
  return refuse(Outcome::kRefusedFull, Full());
}

bool Batcher::OverfullInTime(const Task& task) const {
  if (queue_.empty() || options_.max_enqueued_time == Duration::max()) return false;
  return (queue_.Work() + task.work) / std::max(1, options_.threads) > options_.max_enqueued_time;
}

absl::Status Batcher::Full() const {
  const absl::Status full(
      options_.full_status,
      absl::StrCat("the queue of model '", options_.name, "' is full (", queue_.size(),
                   " requests, ", queue_.bytes(), " bytes, expected to take ",
                   Millis(queue_.Work() / std::max(1, options_.threads)),
                   " ms); try again later, or raise max_enqueued_batches or workers"));
  // When half of what waits has run there is room, and still work.
  const Duration half = queue_.Work() / (2 * std::max(1, options_.threads));
  return WithRetryAfter(full, std::min<Duration>(half, kLongestRetry));
}

absl::Status Batcher::Left() {
  static const absl::Status left = absl::CancelledError("the caller cancelled the request");
  return left;
}

absl::Status Batcher::Stopping() const {
  return absl::UnavailableError(absl::StrCat("model '", options_.name, "' is being stopped"));
}

// A task that left the queue before its turn is answered by the timer, or by the last of its runs.
void Batcher::EndUnrun(Task* task, Outcome outcome, const absl::Status& status) {
  if (task->failed.ok()) {
    task->outcome = outcome;
    task->failed = status;
  }
  if (task->running > 0) return;
  ended_.Add(task);
  timer_.NotifyOne();
}

// Runs under the token's lock, so it must not answer.
void Batcher::Cancelled(Task* task) {
  MutexLock lock(mutex_);
  task->left = true;
  if (queue_.Remove(task)) EndUnrun(task, Outcome::kCancelled, Left());
  for (SlotUse& slot : slots_) {
    const auto left = [](const Slice& slice) { return slice.task->left; };
    if (slot.abandoned && !slot.batch.empty() &&
        std::all_of(slot.batch.begin(), slot.batch.end(), left))
      slot.abandoned->Cancel();
  }
}

void Batcher::CollectExpired(TimePoint now) {
  while (Task* const task = queue_.TakeExpired(now)) EndUnrun(task, Outcome::kExpired, Late());
}

int Batcher::TakeSlot(TimePoint now, absl::Span<const Slice> batch, BatchClose close) {
  const int slot = idle_slots_.back();
  idle_slots_.pop_back();
  const Task& first = *batch[0].task;
  int64_t rows = 0;
  for (const Slice& slice : batch) {
    rows += slice.rows;
    ++slice.task->running;
  }
  BucketBook::Kind& kind = book_.Of(first, *runner_);
  BatchCounts count;
  count.batches = 1;
  count.requests = batch.size();
  count.rows = static_cast<uint64_t>(rows);
  count.padded_rows = static_cast<uint64_t>(runner_->RunRows(first, rows) - rows);
  count.closed[static_cast<size_t>(close)] = 1;
  kind.counts.Add(count);

  SlotUse& use = slots_[slot];
  use.started = now;
  use.batches =
      std::max(1.0, static_cast<double>(rows) / static_cast<double>(options_.limits.max_rows));
  use.rows = rows;
  use.measured = runner_->Expect(first, rows);
  use.expected = kind.Expect(use.measured, rows);
  use.key = first.key;
  use.failed = use.told = false;
  use.worker = this_worker;
  use.batch = batch;
  use.abandoned.reset();
  if (batch.size() > 1) use.abandoned.emplace();
  return slot;
}

void Batcher::ReleaseSlot(int slot) {
  const TimePoint now = options_.clock->Now();
  SlotUse& use = slots_[slot];
  const Duration took = now - use.started;
  if (!use.failed) {  // how long a run is kept until it is given up says nothing of good ones
    NoteRun(std::chrono::duration_cast<Duration>(took / use.batches), now);
    if (BucketBook::Kind* kind = book_.Find(use.key); kind != nullptr)
      kind->Learn(use.measured, use.rows, took);
  }
  last_finished_ = now;
  use.started = TimePoint::max();
  use.batches = 1;
  use.idle_since = now;
  idle_slots_.push_back(slot);
  SlotIsFree();
}

// One slow run does not hide stuck ones for ever.
Duration Batcher::SlowestAt(TimePoint now) const {
  Duration slowest = slowest_;
  for (TimePoint at = slowest_since_ + kForgetHalf; at <= now && slowest > options_.slowest;
       at += kForgetHalf)
    slowest = std::max(options_.slowest, slowest / 2);
  return slowest;
}

void Batcher::NoteRun(Duration took, TimePoint now) {
  if (took < SlowestAt(now)) return;
  slowest_ = took;
  slowest_since_ = now;
}

void Batcher::SlotIsFree() {
  if (!queue_.empty() && waiting_workers_ > 0) work_.NotifyOne();
  if (!stopping_) return;
  idle_.NotifyAll();
  work_.NotifyAll();  // those that waited for the slot, should the queue be empty by now
}

// An idle slot used before that time and not trimmed since, or -1.
int Batcher::TakeIdle(TimePoint used_before) {
  auto found = idle_slots_.begin();
  while (found != idle_slots_.end() && slots_[*found].idle_since > used_before) ++found;
  if (found == idle_slots_.end()) return -1;
  const int slot = *found;
  idle_slots_.erase(found);
  slots_[slot].idle_since = TimePoint::max();
  return slot;
}

void Batcher::TrimIdle(TimePoint now) {
  constexpr auto kIdle = std::chrono::minutes(1);
  mutex_.Lock();
  for (int slot; (slot = TakeIdle(now - kIdle)) >= 0;) {
    mutex_.Unlock();
    runner_->Trim(slot);
    mutex_.Lock();
    idle_slots_.insert(idle_slots_.begin(), slot);  // those with warm memory go first
    SlotIsFree();
  }
  mutex_.Unlock();
}

int Batcher::TakeBatch(Batch* batch) {
  if (queue_.empty() || idle_slots_.empty()) return -1;
  const TimePoint now = options_.clock->Now();
  CollectExpired(now);
  queue_.TakeBatch(now, batch);
  return batch->slices.empty() ? -1 : TakeSlot(now, batch->slices, batch->close);
}

int Batcher::WaitForBatch(Batch* batch) {
  for (;;) {
    if (const int slot = TakeBatch(batch); slot >= 0) return slot;
    if (stopping_ && queue_.empty()) return -1;
    ++waiting_workers_;
    if (queue_.empty() || idle_slots_.empty()) {
      work_.Wait(mutex_);
    } else {
      work_.WaitUntil(mutex_, queue_.NextBatchTime());
    }
    --waiting_workers_;
  }
}

// True when the timer's thread takes over what is to be sent: a worker with a full queue is what
// throughput depends on, and sending was a tenth of its time for a network of 0.3 ms a row.
bool Batcher::HandOver(Ended* ended) {
  if (ended->size < kHandOverFrom || queue_.empty() || ended_.size > 0) return false;
  ended_ = std::exchange(*ended, {});
  timer_.NotifyOne();
  return true;
}

void Batcher::Work(int index) {
  this_worker = index;
  if (options_.first_run) options_.first_run(index);
  Batch batch;
  Ended ended;
  mutex_.Lock();
  ++ready_workers_;
  idle_.NotifyAll();
  for (int slot; (slot = WaitForBatch(&batch)) >= 0;) {
    // What a full batch left behind is another idle worker's.
    if (!queue_.empty() && waiting_workers_ > 0 && !idle_slots_.empty()) work_.NotifyOne();
    mutex_.Unlock();
    RunBatch(slot, batch.slices, &ended);
    batch.clear();
    mutex_.Lock();
    if (!HandOver(&ended)) {
      mutex_.Unlock();
      Send(&ended);
      mutex_.Lock();
    }
    ReleaseSlot(slot);
  }
  work_.NotifyAll();  // the queue is empty and stays so: the others may leave too
  mutex_.Unlock();
}

// Sleeps until the earliest deadline. Whoever queues a later one does not wake it, so a stream of
// requests with deadlines far away costs one wake-up per deadline length, not one per request.
void Batcher::KeepTime() {
  mutex_.Lock();
  for (;;) {
    CollectExpired(options_.clock->Now());
    if (ended_.size > 0) {
      Ended sending = std::exchange(ended_, {});
      mutex_.Unlock();
      Send(&sending);
      mutex_.Lock();
      continue;
    }
    if (timer_stop_) break;
    timer_sleeps_until_ = queue_.NextDeadline();
    if (timer_sleeps_until_ == TimePoint::max()) {
      timer_.Wait(mutex_);
    } else {
      timer_.WaitUntil(mutex_, timer_sleeps_until_);
    }
    timer_sleeps_until_ = TimePoint::min();
  }
  mutex_.Unlock();
}

bool Batcher::SendEnded() {
  Ended sending;
  {
    MutexLock lock(mutex_);
    sending = std::exchange(ended_, {});
  }
  const bool any = sending.size > 0;
  Send(&sending);
  return any;
}

BatcherProgress Batcher::Progress() const {
  MutexLock lock(mutex_);
  return ProgressLocked();
}

BatcherProgress Batcher::ProgressLocked() const {
  BatcherProgress progress;
  progress.queued = queue_.size();
  if (!queue_.empty()) progress.waiting_since = queue_.oldest()->enqueued + queue_.limits().timeout;
  for (int slot = 0; slot < static_cast<int>(slots_.size()); ++slot) {
    const SlotUse& use = slots_[slot];
    if (use.started != TimePoint::max())
      progress.runs.push_back({slot, use.started, use.batches, use.told, {}});
  }
  progress.workers = std::max(1, options_.threads);
  progress.last_finished = last_finished_;
  progress.slowest = SlowestAt(options_.clock->Now());
  return progress;
}

std::vector<BatcherProgress::Run> Batcher::NewlyStuck(TimePoint now) {
  MutexLock lock(mutex_);
  const BatcherProgress progress = ProgressLocked();
  std::vector<BatcherProgress::Run> stuck;
  for (const BatcherProgress::Run& run : progress.runs) {
    if (run.told || !IsStuck(progress, run, now)) continue;
    SlotUse& use = slots_[run.slot];
    use.told = true;
    ++stuck_runs_;
    stuck.push_back(run);
    if (use.batch.empty()) continue;  // its tasks may be gone
    const std::string step = runner_->Doing(run.slot);
    stuck.back().what = absl::StrCat(runner_->Describe(*use.batch[0].task), ", ", use.rows, " rows",
                                     step.empty() ? "" : ", at ", step);
  }
  return stuck;
}

BatcherStats Batcher::Stats() const {
  BatcherStats stats;
  const auto count = [this](Outcome outcome) {
    return outcomes_[static_cast<size_t>(outcome)].load(std::memory_order_relaxed);
  };
  stats.answered = count(Outcome::kAnswered);
  stats.failed = count(Outcome::kFailed);
  stats.refused_full = count(Outcome::kRefusedFull);
  stats.refused_late = count(Outcome::kRefusedLate);
  stats.refused_stopped = count(Outcome::kRefusedStopped);
  stats.expired = count(Outcome::kExpired);
  stats.cancelled = count(Outcome::kCancelled);
  MutexLock lock(mutex_);
  stats.inline_runs = inline_runs_;
  stats.reruns = reruns_;
  stats.stuck_runs = stuck_runs_;
  stats.kinds = book_.Counts();
  for (const auto& [name, counts] : stats.kinds) stats.batches.Add(counts);
  return stats;
}

bool Batcher::Step() {
  Batch batch;
  int slot;
  {
    MutexLock lock(mutex_);
    CollectExpired(options_.clock->Now());
    slot = TakeBatch(&batch);
  }
  const bool any_ended = SendEnded();
  if (slot < 0) return any_ended;
  Ended ended;
  RunBatch(slot, batch.slices, &ended);
  Send(&ended);
  MutexLock lock(mutex_);
  ReleaseSlot(slot);
  return true;
}

}  // namespace floe::server
