// Reports what came of requests, and sends their answers.
#include "server/scheduling/completion.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/threads.h"

namespace floe::server {

void Completion::Start(const std::string& name) {
  thread_ = SpawnThread({absl::StrCat("s:", name), 0, {}}, [this] { Work(); });
}

void Completion::Count(Outcome outcome, absl::StatusCode code, int more) {
  counts_[static_cast<size_t>(outcome)].fetch_add(more, std::memory_order_relaxed);
  by_code_[static_cast<size_t>(code) % kStatusCodes].fetch_add(more, std::memory_order_relaxed);
}

StatusCounts Completion::status_counts() const {
  StatusCounts counts;
  for (size_t code = 0; code < kStatusCodes; ++code)
    counts[code] = by_code_[code].load(std::memory_order_relaxed);
  return counts;
}

std::string Completion::last_internal_error() const {
  MutexLock lock(mutex_);
  return last_internal_;
}

void Completion::Report(Request* request, Outputs outputs) {
  const bool counts = request->whole == nullptr;  // parts are counted as one request
  if (counts) Count(request->outcome, request->status.code(), 1);
  if (absl::IsInternal(request->status)) {
    MutexLock lock(mutex_);
    last_internal_ = std::string(request->status.message());
  }
  // The listener goes first: afterwards nobody else knows the request.
  if (request->cancel != nullptr) request->cancel->ClearListener(request);
  request->reported = true;
  const auto report = [&] {
    if (request->status.ok()) {
      request->complete(outputs, request->timings);
    } else {
      request->complete(request->status, request->timings);
    }
    return absl::OkStatus();
  };
  const absl::Status reported = CatchOutOfMemory(report);
  if (reported.ok()) return;
  if (counts) Count(request->outcome, request->status.code(), -1);
  if (counts) Count(Outcome::kFailed, reported.code(), 1);
  request->complete(reported, request->timings);
}

void Completion::Send(EndedRequests* ended) {
  while (!ended->empty()) {
    const std::unique_ptr<Request> request(&ended->front());
    ended->pop_front();
    if (!request->reported) Report(request.get(), {});
    if (request->send) request->send();
  }
}

void Completion::Answer(Request* request, Outcome outcome, const absl::Status& status) {
  request->outcome = outcome;
  request->status = status;
  EndedRequests ended;
  ended.push_back(*request);
  Send(&ended);
}

void Completion::Post(Request* request, Outcome outcome, const absl::Status& status) {
  request->outcome = outcome;
  request->status = status;
  MutexLock lock(mutex_);
  ended_.push_back(*request);
  posted_.NotifyOne();
}

bool Completion::TryPost(EndedRequests* ended) {
  MutexLock lock(mutex_);
  if (!ended_.empty() || !thread_.joinable()) return false;
  ended_.swap(*ended);
  posted_.NotifyOne();
  return true;
}

bool Completion::Drain() {
  EndedRequests sending;
  {
    MutexLock lock(mutex_);
    sending.swap(ended_);
  }
  const bool any = !sending.empty();
  Send(&sending);
  return any;
}

void Completion::Work() {
  mutex_.Lock();
  for (;;) {
    while (ended_.empty() && !stopping_) posted_.Wait(mutex_);
    if (ended_.empty()) break;
    mutex_.Unlock();
    (void)Drain();
    mutex_.Lock();
  }
  mutex_.Unlock();
}

void Completion::Stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    posted_.NotifyOne();
  }
  if (thread_.joinable()) thread_.join();
  (void)Drain();
}

}  // namespace floe::server
