// The part of the batcher that runs batches, hands out what came of them, and ends it all.
#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/status.h"
#include "server/batching/batcher.h"

namespace floe::server {
namespace {

// Of runs that are told to end, until they are left alone.
constexpr Duration kLastStep = std::chrono::seconds(1);

bool GaveUp(const absl::Status& status) {
  return absl::IsCancelled(status) || absl::IsDeadlineExceeded(status);
}

Outcome OutcomeOf(const absl::Status& failed) {
  if (absl::IsCancelled(failed)) return Outcome::kCancelled;
  return absl::IsDeadlineExceeded(failed) ? Outcome::kExpired : Outcome::kFailed;
}

// Rows [first, first + rows) of a tensor of fixed-size elements whose dim 0 counts rows.
std::byte* RowData(const TensorView& whole, int64_t first) {
  const int64_t rows = whole.shape.dim(0);
  const size_t row_bytes = rows == 0 ? 0 : whole.bytes() / static_cast<size_t>(rows);
  return static_cast<std::byte*>(whole.data) + static_cast<size_t>(first) * row_bytes;
}

// The memory of a whole task's outputs, by the shapes of one piece.
absl::StatusOr<std::vector<Tensor>> AllocateWhole(const OutputViews& piece, int64_t rows) {
  constexpr int64_t kMostBytes = INT32_MAX;  // of a reply
  std::vector<Tensor> whole;
  int64_t left = kMostBytes;
  for (const TensorView& view : piece) {
    Shape shape = view.shape;
    shape.set_dim(0, rows);
    const auto element = static_cast<int64_t>(DTypeSize(view.dtype));
    const auto elements = CheckedElements(shape.dims(), DTypeSize(view.dtype), left);
    if (!elements.ok())
      return absl::OutOfRangeError(
          absl::StrCat("the outputs of a request of ", rows, " rows take more than ", kMostBytes,
                       " bytes, which no reply can hold; send fewer rows at a time"));
    left -= *elements * element;
    whole.push_back(Tensor::Allocate(view.dtype, shape));
  }
  return whole;
}

}  // namespace

absl::Status Batcher::StillWanted(const InferRequest& request) const {
  if (given_up_) return Stopping();
  if (request.cancel != nullptr && request.cancel->cancelled()) return Left();
  if (request.deadline <= options_.clock->Now())
    return absl::DeadlineExceededError("the deadline passed while the request was computed");
  return absl::OkStatus();
}

RunLimits Batcher::LimitsOf(int slot, absl::Span<const Slice> batch) {
  RunLimits limits;
  limits.clock = options_.clock;
  limits.deadline = TimePoint::min();
  for (const Slice& slice : batch)
    limits.deadline = std::max(limits.deadline, slice.task->request->deadline);
  if (batch.size() == 1) {
    limits.cancel = batch[0].task->request->cancel.get();
  } else {
    MutexLock lock(mutex_);
    limits.cancel = &*slots_[slot].abandoned;
  }
  return limits;
}

absl::Status Batcher::Run(int slot, absl::Span<const Slice> batch, bool* too_long) {
  RunLimits limits = LimitsOf(slot, batch);
  const TimePoint wanted_until = limits.deadline;
  if (options_.longest_run < Duration::max())
    limits.deadline = std::min(limits.deadline, options_.clock->Now() + options_.longest_run);
  absl::Status status = CatchOutOfMemory([&] { return runner_->Run(slot, batch, limits); });
  if (given_up_ && absl::IsCancelled(status)) return Stopping();
  *too_long = absl::IsDeadlineExceeded(status) && limits.deadline < wanted_until;
  if (!*too_long) return status;
  return absl::DeadlineExceededError(
      absl::StrCat("the run took longer than max_run_seconds of model '", options_.name, "' (",
                   std::chrono::duration<double>(options_.longest_run).count(), ")"));
}

void Batcher::RunBatch(int slot, absl::Span<const Slice> batch, Ended* ended) {
  bool too_long = false;
  const absl::Status status = Run(slot, batch, &too_long);
  if (!status.ok() && batch.size() > 1 && (too_long || !GaveUp(status)))
    return RunSingly(slot, batch);
  SetApart(*batch[0].task, status, too_long);
  Finish(slot, batch, status, ended);
}

void Batcher::RunSingly(int slot, absl::Span<const Slice> batch) {
  {
    MutexLock lock(mutex_);
    slots_[slot].batch = {};  // from here on its tasks go one by one
    slots_[slot].failed = true;
    ++reruns_;
  }
  for (const Slice& slice : batch) {
    const absl::Span<const Slice> one(&slice, 1);
    absl::Status status = StillWanted(*slice.task->request);
    bool too_long = false;
    if (status.ok()) {
      {
        MutexLock lock(mutex_);
        slots_[slot].batch = one;
      }
      status = Run(slot, one, &too_long);
    }
    SetApart(*slice.task, status, too_long);
    Ended ended;
    Finish(slot, one, status, &ended);
    Send(&ended);
  }
}

// A caller whose request fails may send more like it, and they would fail others' batches.
void Batcher::SetApart(const Task& task, const absl::Status& status, bool too_long) {
  if (status.ok() || absl::IsResourceExhausted(status)) return;
  if (GaveUp(status) && !too_long) return;
  if (task.request->caller == 0) return;
  MutexLock lock(mutex_);
  apart_.Add(task.request->caller, options_.clock->Now());
}

absl::Status Batcher::Gather(int slot, const Slice& slice, int64_t first_row) {
  const MemoryScope paid(memory_);
  OutputViews piece;
  runner_->Outputs(slot, slice, first_row, &piece);
  for (const TensorView& view : piece)
    if (view.shape.rank() == 0 || view.shape.dim(0) != slice.rows || DTypeSize(view.dtype) == 0)
      return absl::InternalError("an output of a request computed in parts has no rows");
  Task* const task = slice.task;
  OutputViews whole;
  {
    MutexLock lock(gather_mutex_);
    if (task->gathered.empty()) {
      FLOE_ASSIGN_OR_RETURN(task->gathered, AllocateWhole(piece, task->rows));
    }
    for (const Tensor& tensor : task->gathered) whole.push_back(tensor.view());
  }
  for (size_t i = 0; i < piece.size(); ++i) {
    Shape expected = piece[i].shape;
    expected.set_dim(0, task->rows);
    if (whole[i].shape != expected)
      return absl::InternalError(
          absl::StrCat("output ", i, " has ", piece[i].shape.ToString(),
                       " in one part of the request and other inner dims in another, ",
                       whole[i].shape.ToString(), " in all"));
    CopyElements(piece[i], RowData(whole[i], slice.first));
  }
  return absl::OkStatus();
}

// Counts the slices as run, and answers the tasks of which they were the last.
void Batcher::Finish(int slot, absl::Span<const Slice> batch, const absl::Status& status,
                     Ended* ended) {
  // At most one slice of a batch is partial: one task is split at a time.
  absl::InlinedVector<absl::Status, 1> gathered;
  int64_t row = 0;
  for (const Slice& slice : batch) {
    if (slice.partial() && status.ok())
      gathered.push_back(CatchOutOfMemory([&] { return Gather(slot, slice, row); }));
    row += slice.rows;
  }
  absl::InlinedVector<const Task*, 2> unfinished;
  {
    MutexLock lock(mutex_);
    slots_[slot].batch = {};
    slots_[slot].failed |= !status.ok();
    size_t partial = 0;
    for (const Slice& slice : batch) {
      Task* const task = slice.task;
      const absl::Status& own = slice.partial() && status.ok() ? gathered[partial++] : status;
      if (!own.ok()) {
        if (task->failed.ok()) {
          task->outcome = OutcomeOf(own);
          task->failed = own;
        }
        queue_.Remove(task);  // the rest of it need not run
      }
      --task->running;
      if (task->running > 0 || task->bucket != nullptr) unfinished.push_back(task);
    }
  }
  row = 0;
  for (const Slice& slice : batch) {
    const int64_t rows = slice.rows;
    if (std::find(unfinished.begin(), unfinished.end(), slice.task) == unfinished.end()) {
      Deliver(slot, slice, row);
      ended->Add(slice.task);
    }
    row += rows;
  }
}

void Batcher::Deliver(int slot, const Slice& slice, int64_t first_row) {
  OutputViews views;
  Task* const task = slice.task;
  if (task->failed.ok()) {
    task->failed = CatchOutOfMemory([&] {
      if (slice.partial()) {
        for (const Tensor& tensor : task->gathered) views.push_back(tensor.view());
      } else {
        runner_->Outputs(slot, slice, first_row, &views);
      }
      return absl::OkStatus();
    });
    if (!task->failed.ok()) task->outcome = Outcome::kFailed;
  }
  if (!task->failed.ok()) views.clear();
  Tell(task, views);
}

// What is left of the task is to be sent.
void Batcher::Tell(Task* task, absl::Span<const TensorView> outputs) {
  Count(task->outcome, 1);
  // The listener goes first: afterwards nobody else knows the task.
  if (task->request->cancel != nullptr) task->request->cancel->ClearListener();
  task->told = true;
  const auto tell = [&] {
    task->request->done(task->failed, outputs);
    return absl::OkStatus();
  };
  const absl::Status told = CatchOutOfMemory(tell);
  if (told.ok()) return;
  Count(task->outcome, -1);
  Count(Outcome::kFailed, 1);
  task->request->done(told, {});
}

void Batcher::Send(Ended* ended) {
  while (Task* const task = ended->tasks.front()) {
    const std::unique_ptr<Task> owned(task);
    ended->tasks.Remove(task);
    if (!task->told) Tell(task, {});
    if (task->request->send) task->request->send();
  }
  ended->size = 0;
}

void Batcher::Answer(Task* task, Outcome outcome, const absl::Status& status) {
  task->outcome = outcome;
  task->failed = status;
  Ended ended;
  ended.Add(task);
  Send(&ended);
}

void Batcher::Stop() { (void)StopBy(TimePoint::max()); }

bool Batcher::BusyLocked() const { return idle_slots_.size() < slots_.size() || !queue_.empty(); }

bool Batcher::Idle() const {
  MutexLock lock(mutex_);
  return !BusyLocked();
}

// Workers finish what is queued; real time.
bool Batcher::AwaitIdle(TimePoint until) {
  MutexLock lock(mutex_);
  while (BusyLocked())
    if (!idle_.WaitUntil(mutex_, until)) return !BusyLocked();
  return true;
}

void Batcher::GiveUp() {
  std::vector<std::shared_ptr<CancelToken>> runs;
  {
    MutexLock lock(mutex_);
    given_up_ = true;
    while (!queue_.empty()) {
      Task* const task = queue_.any();
      queue_.Remove(task);
      EndUnrun(task, Outcome::kRefusedStopped, Stopping());
    }
    for (SlotUse& slot : slots_) {
      if (slot.abandoned) slot.abandoned->Cancel();
      if (slot.started != TimePoint::max() && slot.batch.size() == 1)
        runs.push_back(slot.batch[0].task->request->cancel);
    }
  }
  for (const auto& run : runs)
    if (run != nullptr) run->Cancel();  // its listener locks
}

std::string Batcher::RunsUnderWay(TimePoint now) const {
  std::string text;
  MutexLock lock(mutex_);
  for (const SlotUse& slot : slots_) {
    if (slot.started == TimePoint::max()) continue;
    absl::StrAppend(
        &text, text.empty() ? "" : ", ",
        slot.worker < 0 ? "a caller's thread" : absl::StrCat("w", slot.worker, ":", options_.name),
        " for ", std::chrono::duration_cast<std::chrono::seconds>(now - slot.started).count(),
        " s");
  }
  return text;
}

bool Batcher::StopBy(TimePoint deadline) {
  MutexLock stop_lock(stop_mutex_);
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    queue_.StopWaiting();
    while (threads_.empty() && !queue_.empty()) {
      Task* const task = queue_.any();
      queue_.Remove(task);
      EndUnrun(task, Outcome::kRefusedStopped, Stopping());
    }
  }
  work_.NotifyAll();
  if (deadline < TimePoint::max() && !AwaitIdle(deadline)) {
    GiveUp();
    if (!AwaitIdle(Clock::Steady().Now() + kLastStep)) return false;
  }
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
  SendEnded();
  return true;
}

}  // namespace floe::server
