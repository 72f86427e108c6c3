// The part of the batcher that runs batches and hands out what came of them.
#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "server/batching/batcher.h"

namespace floe::server {
namespace {

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

absl::Status Batcher::Run(int slot, absl::Span<const Slice> batch) {
  return CatchOutOfMemory([&] { return runner_->Run(slot, batch, LimitsOf(slot, batch)); });
}

void Batcher::RunBatch(int slot, absl::Span<const Slice> batch, Ended* ended) {
  const absl::Status status = Run(slot, batch);
  if (!status.ok() && batch.size() > 1 && !GaveUp(status)) return RunSingly(slot, batch);
  SetApart(*batch[0].task, status);
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
    if (status.ok()) status = Run(slot, one);
    SetApart(*slice.task, status);
    Ended ended;
    Finish(slot, one, status, &ended);
    Send(&ended);
  }
}

// A caller whose request fails may send more like it, and they would fail others' batches.
void Batcher::SetApart(const Task& task, const absl::Status& status) {
  if (status.ok() || GaveUp(status) || absl::IsResourceExhausted(status)) return;
  if (task.request->caller == 0) return;
  MutexLock lock(mutex_);
  apart_.Add(task.request->caller, options_.clock->Now());
}

absl::Status Batcher::Gather(int slot, const Slice& slice, int64_t first_row) {
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
      FLOE_ASSIGN_OR_RETURN(task->gathered,
                            CatchOutOfMemory([&] { return AllocateWhole(piece, task->rows); }));
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
    if (slice.partial() && status.ok()) gathered.push_back(Gather(slot, slice, row));
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
  const bool good = slice.task->failed.ok();
  if (good && slice.partial()) {
    for (const Tensor& tensor : slice.task->gathered) views.push_back(tensor.view());
  } else if (good) {
    runner_->Outputs(slot, slice, first_row, &views);
  }
  Tell(slice.task, views);
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

}  // namespace floe::server
