#include "server/batching/batcher.h"

#include <pthread.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace floe::server {
namespace {

void NameThread(const std::string& name) {
  pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());  // the kernel's limit
}

// Answers without outputs. The listener goes first: afterwards nobody else knows the task.
void Answer(std::unique_ptr<Task> task, const absl::Status& status) {
  if (task->request->cancel != nullptr) task->request->cancel->ClearListener();
  task->request->done(status, {});
}

absl::Status Late() {
  return absl::DeadlineExceededError("the deadline passed while the request waited for its run");
}

absl::Status Left() { return absl::CancelledError("the caller cancelled the request"); }

}  // namespace

bool IsStuck(const BatcherProgress& progress, TimePoint now) {
  if (progress.waiting_since == TimePoint::max()) return false;
  const auto patience =
      std::chrono::duration_cast<Duration>(20 * progress.largest * progress.slowest);
  const Duration limit = std::max<Duration>(std::chrono::seconds(10), patience);
  return now - std::max(progress.waiting_since, progress.last_finished) > limit;
}

Batcher::Batcher(std::unique_ptr<BatchRunner> runner, Options options)
    : runner_(std::move(runner)),
      options_(std::move(options)),
      queue_(options_.limits),
      slots_(runner_->slots()),
      slowest_(options_.slowest) {
  for (int slot = runner_->slots() - 1; slot >= 0; --slot) idle_slots_.push_back(slot);
  for (int i = 0; i < options_.threads; ++i)
    threads_.emplace_back([this, i] {
      NameThread(absl::StrCat("w", i, ":", options_.name));
      Work();
    });
  if (options_.threads > 0)
    timer_thread_ = std::thread([this] {
      NameThread(absl::StrCat("t:", options_.name));
      KeepTime();
    });
}

Batcher::~Batcher() { Stop(); }

void Batcher::Submit(std::unique_ptr<InferRequest> request) {
  auto task = std::make_unique<Task>();
  task->request = std::move(request);
  const TimePoint now = options_.clock->Now();
  const CancelToken* cancel = task->request->cancel.get();
  if (cancel != nullptr && cancel->cancelled()) return Answer(std::move(task), Left());
  if (task->request->deadline <= now) return Answer(std::move(task), Late());
  if (absl::Status s = runner_->Admit(task.get()); !s.ok()) return Answer(std::move(task), s);
  if (task->cheap && TryRunInline(&task, now)) return;
  Enqueue(std::move(task), now);
}

bool Batcher::TryRunInline(std::unique_ptr<Task>* task, TimePoint now) {
  int slot;
  Task* const alone = task->get();
  {
    MutexLock lock(mutex_);
    // A queued request was here first, so it must not be overtaken.
    if (stopping_ || !queue_.empty() || idle_slots_.empty()) return false;
    slot = TakeSlot(now, absl::MakeConstSpan(&alone, 1));
  }
  (void)task->release();
  RunBatch(slot, absl::MakeConstSpan(&alone, 1));
  MutexLock lock(mutex_);
  ReleaseSlot(slot);
  return true;
}

void Batcher::Enqueue(std::unique_ptr<Task> owned, TimePoint now) {
  Task* task = owned.get();
  CancelToken* cancel = task->request->cancel.get();
  const TimePoint deadline = task->request->deadline;
  // Set before the task is queued: afterwards a worker may finish and free it at any moment. A
  // listener that fires before Push finds nothing to remove; the check under the lock below makes
  // up for that.
  if (cancel != nullptr) cancel->SetListener([this, task] { CancelQueued(task); });
  absl::Status refused;
  bool wake_worker = false, wake_timer = false;
  {
    MutexLock lock(mutex_);
    if (stopping_) {
      refused =
          absl::UnavailableError(absl::StrCat("model '", options_.name, "' is being stopped"));
    } else if (cancel != nullptr && cancel->cancelled()) {
      refused = Left();
    } else if (!queue_.Push(task, now)) {
      refused = absl::ResourceExhaustedError(absl::StrCat(
          "the queue of model '", options_.name, "' is full (", queue_.size(), " requests, ",
          queue_.bytes(), " bytes); try again later, or raise max_enqueued_batches or workers"));
    } else {
      (void)owned.release();  // the queue's now
      wake_worker = waiting_workers_ > 0 && !idle_slots_.empty();
      wake_timer = deadline < timer_sleeps_until_;
    }
  }
  if (!refused.ok()) return Answer(std::move(owned), refused);
  if (wake_worker) work_.NotifyOne();
  if (wake_timer) timer_.NotifyOne();
}

// Runs under the token's lock, so it must not answer: it only takes the task out for the timer to
// answer.
void Batcher::CancelQueued(Task* task) {
  MutexLock lock(mutex_);
  if (!queue_.Remove(task)) return;
  ended_.push_back({task, Left()});
  timer_.NotifyOne();
}

int Batcher::TakeSlot(TimePoint now, absl::Span<Task* const> batch) {
  const int slot = idle_slots_.back();
  idle_slots_.pop_back();
  int64_t rows = 0;
  for (const Task* task : batch) rows += task->rows;
  slots_[slot].started = now;
  slots_[slot].batches =
      std::max(1.0, static_cast<double>(rows) / static_cast<double>(options_.limits.max_rows));
  return slot;
}

void Batcher::ReleaseSlot(int slot) {
  const TimePoint now = options_.clock->Now();
  const auto took =
      std::chrono::duration_cast<Duration>((now - slots_[slot].started) / slots_[slot].batches);
  slowest_ = std::max(slowest_, took);
  last_finished_ = now;
  slots_[slot] = SlotUse();
  slots_[slot].idle_since = now;
  idle_slots_.push_back(slot);
  SlotIsFree();
}

void Batcher::SlotIsFree() {
  if (!queue_.empty() && waiting_workers_ > 0) work_.NotifyOne();
  if (stopping_) idle_.NotifyAll();
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

void Batcher::CollectExpired(TimePoint now) {
  queue_.Expire(now, &expired_);
  for (Task* task : expired_) ended_.push_back({task, Late()});
  if (!expired_.empty()) timer_.NotifyOne();
  expired_.clear();
}

int Batcher::TakeBatch(std::vector<Task*>* batch) {
  if (queue_.empty() || idle_slots_.empty()) return -1;
  const TimePoint now = options_.clock->Now();
  CollectExpired(now);
  queue_.TakeBatch(now, batch);
  return batch->empty() ? -1 : TakeSlot(now, *batch);
}

int Batcher::WaitForBatch(std::vector<Task*>* batch) {
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

void Batcher::Work() {
  std::vector<Task*> batch;
  mutex_.Lock();
  for (int slot; (slot = WaitForBatch(&batch)) >= 0;) {
    mutex_.Unlock();
    RunBatch(slot, batch);
    batch.clear();
    mutex_.Lock();
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
    if (!ended_.empty()) {
      mutex_.Unlock();
      DeliverEnded();
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

bool Batcher::DeliverEnded() {
  std::vector<Ended> ended;
  {
    MutexLock lock(mutex_);
    ended.swap(ended_);
  }
  for (Ended& e : ended) Answer(std::unique_ptr<Task>(e.task), e.status);
  return !ended.empty();
}

void Batcher::RunBatch(int slot, absl::Span<Task* const> batch) {
  absl::Status status = runner_->Run(slot, batch);
  if (status.ok()) {
    int64_t row = 0;
    for (Task* task : batch) {
      const int64_t rows = task->rows;
      DeliverRows(slot, task, row);
      row += rows;
    }
  } else if (batch.size() == 1) {
    Answer(std::unique_ptr<Task>(batch[0]), status);
  } else {
    for (Task* task : batch) {
      status = runner_->Run(slot, absl::MakeConstSpan(&task, 1));
      if (status.ok()) {
        DeliverRows(slot, task, 0);
      } else {
        Answer(std::unique_ptr<Task>(task), status);
      }
    }
  }
}

void Batcher::DeliverRows(int slot, Task* task, int64_t first_row) {
  const std::unique_ptr<Task> owned(task);
  OutputViews views;
  runner_->Outputs(slot, *task, first_row, &views);
  if (task->request->cancel != nullptr) task->request->cancel->ClearListener();
  task->request->done(absl::OkStatus(), views);
}

void Batcher::Stop() {
  MutexLock stop_lock(stop_mutex_);
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    queue_.StopWaiting();
    std::vector<Task*> left;
    if (threads_.empty()) {
      while (!queue_.empty()) queue_.TakeBatch(TimePoint::max(), &left);
      for (Task* task : left)
        ended_.push_back({task, absl::UnavailableError(
                                    absl::StrCat("model '", options_.name, "' is being stopped"))});
    }
  }
  work_.NotifyAll();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  {
    MutexLock lock(mutex_);
    while (idle_slots_.size() < slots_.size())
      idle_.Wait(mutex_);  // callers' threads still running one
    timer_stop_ = true;
  }
  timer_.NotifyOne();
  if (timer_thread_.joinable()) timer_thread_.join();
  DeliverEnded();
}

BatcherProgress Batcher::Progress() const {
  MutexLock lock(mutex_);
  BatcherProgress progress;
  progress.queued = queue_.size();
  if (!queue_.empty()) progress.waiting_since = queue_.oldest()->enqueued;
  for (const SlotUse& slot : slots_) {
    progress.running += slot.started != TimePoint::max();
    progress.waiting_since = std::min(progress.waiting_since, slot.started);
    progress.largest = std::max(progress.largest, slot.batches);
  }
  progress.last_finished = last_finished_;
  progress.slowest = slowest_;
  return progress;
}

bool Batcher::Step() {
  std::vector<Task*> batch;
  int slot;
  {
    MutexLock lock(mutex_);
    CollectExpired(options_.clock->Now());
    slot = TakeBatch(&batch);
  }
  const bool ended = DeliverEnded();
  if (slot < 0) return ended;
  RunBatch(slot, batch);
  MutexLock lock(mutex_);
  ReleaseSlot(slot);
  return true;
}

}  // namespace floe::server
