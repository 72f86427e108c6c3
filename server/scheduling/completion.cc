// Answers requests: on the thread that has their outputs, or on another one those that were taken
// out of the queue by a thread that must not wait.
#include "server/scheduling/completion.h"

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

void AnswerCounts::Add(Outcome outcome, const absl::Status& status, int more) {
  outcomes_[static_cast<size_t>(outcome)].fetch_add(more, std::memory_order_relaxed);
  by_code_[static_cast<size_t>(status.code()) % kStatusCodes].fetch_add(more,
                                                                        std::memory_order_relaxed);
  if (!absl::IsInternal(status)) return;
  MutexLock lock(mutex_);
  last_internal_ = std::string(status.message());
}

void AnswerCounts::CopyTo(SchedulerStats* stats) const {
  const auto copy = [](const auto& from, auto& to) {
    for (size_t i = 0; i < from.size(); ++i) to[i] = from[i].load(std::memory_order_relaxed);
  };
  copy(outcomes_, stats->outcomes);
  copy(by_code_, stats->by_code);
  MutexLock lock(mutex_);
  stats->last_internal_error = last_internal_;
}

Completion::Completion() {
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
  const bool counts = request->whole == nullptr;  // parts are counted as one request
  if (counts) counts_.Add(request->outcome, request->status);
  const absl::Status completed = CatchOutOfMemory([&] {
    if (request->status.ok()) {
      request->call.complete(outputs, request->timings);
    } else {
      request->call.complete(request->status, request->timings);
    }
    return absl::OkStatus();
  });
  if (completed.ok()) return;
  if (counts) counts_.Add(request->outcome, request->status, -1);
  if (counts) counts_.Add(Outcome::kFailed, completed);
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
