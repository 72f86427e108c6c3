// Answers requests: on the thread that has their outputs, or on another one those that were taken
// out of the queue by a thread that must not wait.
#include "server/scheduling/completion.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/budget.h"

namespace floe::server {

const absl::Status& CallerLeftError() {
  static const absl::Status error = absl::CancelledError("the caller cancelled the request");
  return error;
}

const absl::Status& ExpiredError() {
  static const absl::Status error =
      absl::DeadlineExceededError("the deadline passed while the request waited for its run");
  return error;
}

Outcome OutcomeOf(const absl::Status& status) {
  if (status.ok()) return Outcome::kAnswered;
  if (absl::IsCancelled(status)) return Outcome::kCancelled;
  return absl::IsDeadlineExceeded(status) ? Outcome::kExpired : Outcome::kFailed;
}

void AnswerCounts::Add(RequestCounts::Cell* cell, Outcome outcome, const absl::Status& status,
                       int more) {
  outcomes_[static_cast<size_t>(outcome)].fetch_add(more, std::memory_order_relaxed);
  cell->Count(status.code(), more);
  if (!absl::IsInternal(status)) return;
  MutexLock lock(mutex_);
  last_internal_ = std::string(status.message());
}

void AnswerCounts::CopyTo(SchedulerStats* stats) const {
  for (size_t i = 0; i < kOutcomes; ++i)
    stats->outcomes[i] = outcomes_[i].load(std::memory_order_relaxed);
  stats->requests = requests_.Read();
  for (const RequestCount& count : stats->requests)
    for (size_t i = 0; i < kStatusCodes; ++i) stats->by_code[i] += count.by_code[i];
  MutexLock lock(mutex_);
  stats->last_internal_error = last_internal_;
}

Completion::Completion(const Clock* clock) : clock_(*clock) {
  (void)CallerLeftError();
  (void)ExpiredError();
}

void Completion::Start(std::shared_ptr<AlarmThread> thread) {
  alarm_.emplace(std::move(thread), [this] { Drain(); });
}

void Completion::Answer(Queued* request, Outputs outputs) {
  const std::unique_ptr<Queued> owned(request);
  // The listener goes first: afterwards nobody else knows the request.
  if (request->call.cancel != nullptr) request->call.cancel->ClearListener(request);
  // Parts are counted as one request.
  RequestCounts::Cell* const cell =
      request->whole == nullptr ? &counts_.requests().Of(*request->asked) : nullptr;
  if (cell != nullptr) counts_.Add(cell, request->outcome, request->status);
  const absl::Status completed = CatchOutOfMemory([&] {
    if (request->status.ok()) {
      request->call.complete(outputs, request->timings);
    } else {
      request->call.complete(request->status, request->timings);
    }
    return absl::OkStatus();
  });
  if (completed.ok()) {
    // With what the answer took: it was encoded there.
    if (cell != nullptr && request->status.ok())
      cell->AddTimes(clock_.Now() - std::min(request->call.arrived, request->enqueued),
                     request->timings.run);
    return;
  }
  if (cell != nullptr) counts_.Add(cell, request->outcome, request->status, -1);
  if (cell != nullptr) counts_.Add(cell, Outcome::kFailed, completed);
  request->call.complete(completed, request->timings);
}

void Completion::Answer(Queued* request, Outcome outcome, const absl::Status& status) {
  request->outcome = outcome;
  request->status = status;
  Answer(request);
}

void Completion::Post(Queued* request, Outcome outcome, const absl::Status& status) {
  request->outcome = outcome;
  request->status = status;
  MutexLock lock(mutex_);
  ended_.push_back(*request);
  if (alarm_) alarm_->Set(TimePoint::min());
}

bool Completion::Drain() {
  RequestList<&Queued::arrival_hook> ended;
  {
    MutexLock lock(mutex_);
    ended.swap(ended_);
  }
  const bool any = !ended.empty();
  while (!ended.empty()) {
    Queued* const request = &ended.front();
    ended.pop_front();
    Answer(request);
  }
  return any;
}

void Completion::Stop() {
  if (alarm_) alarm_->Stop();
  while (Drain()) {
  }
}

}  // namespace floe::server
