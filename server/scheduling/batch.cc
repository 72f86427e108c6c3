// Runs a batch and gives each request its outcome; a batch that fails is run again in halves.
#include "server/scheduling/batch.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/budget.h"

namespace floe::server {
namespace {

// Fewer answers of a batch are sent by the time that another thread wakes.
constexpr size_t kHandOverFrom = 4;

bool GaveUp(const absl::Status& status) {
  return absl::IsCancelled(status) || absl::IsDeadlineExceeded(status);
}

}  // namespace

absl::Status BatchRunner::StillWanted(const Queued& request) const {
  if (state_.given_up) return state_.StoppingError();
  if (request.call.cancel != nullptr && request.call.cancel->cancelled()) return CallerLeftError();
  if (request.deadline <= state_.Now())
    return absl::DeadlineExceededError("the deadline passed while the request was computed");
  return absl::OkStatus();
}

RunLimits BatchRunner::LimitsOf(int slot, absl::Span<Queued* const> batch) {
  RunLimits limits;
  limits.clock = state_.options.clock;
  limits.deadline = TimePoint::min();
  for (const Queued* request : batch)
    limits.deadline = std::max(limits.deadline, request->deadline);
  if (batch.size() == 1) {
    limits.cancel = batch[0]->call.cancel.get();
  } else {
    MutexLock lock(state_.mutex);
    limits.cancel = &*state_.slots[slot].abandoned;
  }
  return limits;
}

absl::Status BatchRunner::Execute(int slot, absl::Span<Queued* const> batch, bool* too_long) {
  RunLimits limits = LimitsOf(slot, batch);
  const TimePoint wanted_until = limits.deadline, start = state_.Now();
  const Duration longest = state_.options.longest_run;
  if (longest < Duration::max()) limits.deadline = std::min(limits.deadline, start + longest);
  absl::Status status = CatchOutOfMemory([&] {
    const absl::InlinedVector<const Bound*, 8> bound(batch.begin(), batch.end());
    return state_.executor->Run(slot, bound, limits);
  });
  const Duration took = state_.Now() - start;
  int64_t rows = 0;
  for (const Queued* request : batch) rows += request->binding.rows;
  for (Queued* request : batch) {
    request->timings.run += took;
    request->timings.batch_rows = rows;
  }
  if (state_.given_up && absl::IsCancelled(status)) return state_.StoppingError();
  *too_long = absl::IsDeadlineExceeded(status) && limits.deadline < wanted_until;
  if (!*too_long) return status;
  return absl::DeadlineExceededError(
      absl::StrCat("the run took longer than max_run_seconds of model '", state_.options.name,
                   "' (", std::chrono::duration<double>(longest).count(), ")"));
}

void BatchRunner::Run(int slot, absl::Span<Queued*> batch) {
  bool too_long = false;
  const absl::Status status = Execute(slot, batch, &too_long);
  const bool own_fault =
      !status.ok() && (too_long || !GaveUp(status)) && !absl::IsResourceExhausted(status);
  if (batch.size() == 1 || status.ok() || (GaveUp(status) && !too_long)) {
    if (own_fault && batch[0]->call.principal != 0) {
      MutexLock lock(state_.mutex);
      state_.quarantine.Add(batch[0]->call.principal, state_.Now());
    }
    return Finish(slot, batch, status);
  }
  {
    MutexLock lock(state_.mutex);
    state_.slots[slot].batch = {};
    state_.slots[slot].failed = true;
    ++state_.counts.reruns;
  }
  RunHalf(slot, batch.first(batch.size() / 2));
  RunHalf(slot, batch.subspan(batch.size() / 2));
}

// Half of a batch that failed, of those whose callers still wait.
void BatchRunner::RunHalf(int slot, absl::Span<Queued*> half) {
  size_t kept = 0;
  for (Queued* request : half) {
    const absl::Status status = StillWanted(*request);
    if (status.ok()) {
      half[kept++] = request;
    } else {
      Finish(slot, absl::MakeConstSpan(&request, 1), status);
    }
  }
  if (const absl::Span<Queued*> wanted = half.first(kept); !wanted.empty()) {
    {
      MutexLock lock(state_.mutex);
      state_.slots[slot].batch = wanted;
      state_.slots[slot].abandoned.emplace();
    }
    Run(slot, wanted);
  }
}

void BatchRunner::Finish(int slot, absl::Span<Queued* const> batch, const absl::Status& status) {
  bool more_waits;
  {
    MutexLock lock(state_.mutex);
    state_.slots[slot].batch = {};
    state_.slots[slot].failed |= !status.ok();
    more_waits = batch.size() >= kHandOverFrom && !state_.queue.load().empty();
  }
  int64_t row = 0;
  for (Queued* request : batch) {
    TensorViews outputs;
    request->status = status;
    if (status.ok())
      request->status = CatchOutOfMemory([&] {
        state_.executor->Outputs(slot, *request, row, &outputs);
        return absl::OkStatus();
      });
    request->outcome = OutcomeOf(request->status);
    request->timings.more_waits = more_waits;
    row += request->binding.rows;
    state_.completion.Answer(request, outputs);
  }
}

}  // namespace floe::server
