// Submits the parts of a large request, a few at a time, and puts their outputs together.
#include "server/scheduling/join.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/status.h"

namespace floe::server {
namespace {

constexpr int64_t kMostBytes = INT32_MAX;  // of a reply

// The memory of the whole outputs, by the shapes of one part's.
absl::StatusOr<std::vector<Tensor>> AllocateWhole(Outputs part, int64_t rows) {
  std::vector<Tensor> whole;
  for (const TensorView& view : part) {
    Shape shape = view.shape;
    shape.set_dim(0, rows);
    FLOE_RETURN_IF_ERROR(CheckedElements(shape.dims(), DTypeSize(view.dtype), kMostBytes).status());
    whole.push_back(Tensor::Allocate(view.dtype, shape));
  }
  return whole;
}

}  // namespace

absl::Status CheckOutputBytes(const Queued& whole) {
  if (whole.binding.output_bytes <= kMostBytes) return absl::OkStatus();
  return absl::OutOfRangeError(
      absl::StrCat("the outputs of a request of ", whole.binding.rows, " rows take more than ",
                   kMostBytes, " bytes, which no reply can hold; send fewer rows at a time"));
}

Join::Join(int64_t part_rows, int parts, const MemoryBudget& memory, Submit submit, Finish finish)
    : part_rows_(part_rows),
      memory_(memory),
      submit_(std::move(submit)),
      finish_(std::move(finish)),
      lanes_(static_cast<size_t>(parts)) {}

void Join::Start(std::unique_ptr<Queued> whole) {
  const auto self = shared_from_this();  // all parts may end before this returns
  whole_ = std::move(whole);
  {
    MutexLock lock(mutex_);
    for (Lane& lane : lanes_) (void)TakeNext(&lane);
  }
  if (const auto& cancel = whole_->call.cancel; cancel != nullptr)
    cancel->SetListener(whole_.get(), [this] { Cancel(); });
  const int64_t rows = whole_->binding.rows;  // read before it may be gone
  for (size_t i = 0; i < lanes_.size() && static_cast<int64_t>(i) * part_rows_ < rows; ++i)
    SubmitPart(&lanes_[i]);
}

bool Join::TakeNext(Lane* lane) {
  lane->first = next_row_;
  lane->rows = std::min(part_rows_, whole_->binding.rows - next_row_);
  lane->status = absl::OkStatus();
  next_row_ += lane->rows;
  under_way_ += lane->rows > 0 ? 1 : 0;
  return lane->rows > 0;
}

std::unique_ptr<Queued> Join::MakePart(Lane* lane) {
  const auto asked = std::make_shared<Inference>();
  Request call;
  call.asked = asked;
  call.deadline = whole_->deadline;
  call.priority = whole_->call.priority;
  call.principal = whole_->call.principal;
  call.cancel = lane->cancel;
  call.complete = [self = shared_from_this(), lane](const absl::StatusOr<Outputs>& outputs,
                                                    const Timings& timings) {
    lane->timings = timings;
    lane->status = outputs.status();
    if (outputs.ok())
      lane->status = CatchOutOfMemory([&] { return self->Gather(*lane, *outputs); });
    self->PartEnded(lane);
  };
  auto part = std::make_unique<Queued>(std::move(call));
  TakePart(*whole_, lane->first, lane->rows, asked.get(), &part->binding);
  part->whole = whole_.get();
  part->work = std::chrono::duration_cast<Duration>(whole_->work * static_cast<double>(lane->rows) /
                                                    static_cast<double>(whole_->binding.rows));
  part->run = whole_->run;
  return part;
}

void Join::SubmitPart(Lane* lane) {
  std::unique_ptr<Queued> part;
  lane->status = CatchOutOfMemory([&] {
    part = MakePart(lane);
    return absl::OkStatus();
  });
  if (!lane->status.ok()) return PartEnded(lane);
  submit_(std::move(part));
}

absl::Status Join::Gather(const Lane& lane, Outputs outputs) {
  const MemoryScope paid(memory_);
  const int64_t rows = whole_->binding.rows;
  TensorViews whole;
  std::vector<Tensor> whole_outputs;
  {
    MutexLock lock(mutex_);
    if (outputs_.empty()) {
      FLOE_RETURN_IF_ERROR(paid.Explain(CatchOutOfMemory([&]() -> absl::Status {
        FLOE_ASSIGN_OR_RETURN(whole_outputs, AllocateWhole(outputs, rows));
        return absl::OkStatus();
      })));
      outputs_ = std::move(whole_outputs);
    }
    for (const Tensor& tensor : outputs_) whole.push_back(tensor.view());
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    Shape expected = outputs[i].shape;
    expected.set_dim(0, rows);
    if (whole[i].shape != expected)
      return absl::InternalError(
          absl::StrCat("output ", i, " has ", outputs[i].shape.ToString(),
                       " in one part of the request and other non-batch dimensions in another, ",
                       whole[i].shape.ToString(), " in all"));
    CopyElements(outputs[i], RowsOf(whole[i], lane.first, lane.rows).data);
  }
  return absl::OkStatus();
}

void Join::PartEnded(Lane* lane) {
  bool more, last, failed;
  {
    MutexLock lock(mutex_);
    Timings& timings = whole_->timings;
    if (lane->first == 0) timings.queue = lane->timings.queue;
    timings.run += lane->timings.run;
    timings.batch_rows = std::max(timings.batch_rows, lane->timings.batch_rows);
    if (failed_.ok()) failed_ = lane->status;
    failed = !failed_.ok();
    --under_way_;
    more = !failed && TakeNext(lane);
    last = under_way_ == 0;
  }
  if (more) return SubmitPart(lane);
  if (failed)
    for (const Lane& other : lanes_) other.cancel->Cancel();
  if (last) End();
}

void Join::Cancel() {
  {
    MutexLock lock(mutex_);
    if (failed_.ok()) failed_ = absl::CancelledError("the caller cancelled the request");
  }
  for (const Lane& lane : lanes_) lane.cancel->Cancel();
}

void Join::End() {
  absl::Status status;
  std::vector<Tensor> tensors;
  {
    MutexLock lock(mutex_);
    status = failed_;
    tensors.swap(outputs_);
  }
  TensorViews outputs;
  if (status.ok())
    status = CatchOutOfMemory([&] {
      for (const Tensor& tensor : tensors) outputs.push_back(tensor.view());
      return absl::OkStatus();
    });
  finish_(std::move(whole_), status, outputs);
}

}  // namespace floe::server
