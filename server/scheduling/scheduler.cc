// Submit: refuses a request, runs it at once, queues it, or splits it. Stop: waits for runs, and
// cancels them when it has waited long enough.
#include "server/scheduling/scheduler.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/retry_after.h"
#include "base/status.h"
#include "server/scheduling/admission.h"

namespace floe::server {
namespace {

// Of the time after which a refused caller may try again: estimates for longer are worth little.
constexpr Duration kLongestRetry = std::chrono::seconds(10);

// For runs that were cancelled by Stop, until they are left alone.
constexpr Duration kLastStep = std::chrono::seconds(1);

double Millis(Duration d) { return std::chrono::duration<double, std::milli>(d).count(); }

// Expected by what was estimated at load.
struct EstimatedRun {
  Duration share = Duration::zero();  // of a full run, for the request's rows
  Duration run = Duration::zero();    // of a run of its own, or of a part
  int64_t rows = 0;                   // of that run
};

EstimatedRun EstimateRun(const Queued& request, const SchedulerState& state) {
  const Binding& binding = request.binding;
  const int64_t full = state.options.limits.MaxRows(binding);
  EstimatedRun estimated;
  estimated.rows = binding.splittable ? std::min(binding.rows, full) : binding.rows;
  estimated.run = state.executor->Expect(request, estimated.rows);
  estimated.share = estimated.run;
  if (binding.unbatchable && binding.rows <= full) return estimated;
  const double runs = static_cast<double>(binding.rows) / static_cast<double>(full);
  estimated.share =
      std::chrono::duration_cast<Duration>(state.executor->Expect(request, full) * runs);
  return estimated;
}

bool Refuse(Queued* request, Outcome outcome, absl::Status status) {
  request->outcome = outcome;
  request->status = std::move(status);
  return false;
}

// Options::full_status with RetryAfter.
absl::Status QueueFullError(const SchedulerState& state)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(state.mutex) {
  const QueueLoad& load = state.queue.load();
  const Duration wait = load.Work() / state.options.workers();
  const absl::Status full(
      state.options.full_status,
      absl::StrCat("the queue of model '", state.options.name, "' is full (", load.requests,
                   " requests, ", load.bytes, " bytes, expected to take ", Millis(wait),
                   " ms); try again later, or raise max_enqueued_batches or workers"));
  // When half of what waits has run there is room, and still work.
  return WithRetryAfter(full, std::min<Duration>(wait / 2, kLongestRetry));
}

// Whether it may by its expected cost, which the request remembers.
bool IsAffordable(Queued* request, const EstimatedRun& estimated, TimePoint now,
                  SchedulerState& state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(state.mutex) {
  CostProfile& profile = state.profiles.Of(*request, *state.executor);
  request->work = profile.Expect(estimated.share, request->binding.rows);
  request->run = profile.Expect(estimated.run, estimated.rows);
  const QueueLoad& load = state.queue.load();
  const bool empty = load.done();
  // Others have their turns between the parts of a large request, but large ones do not.
  const bool splits = estimated.rows < request->binding.rows;
  const Backlog backlog{splits ? load.Work() : load.WorkAhead(request->level()),
                        load.Work(),
                        state.slots.Remaining(now),
                        state.options.workers(),
                        empty,
                        empty && state.slots.any_idle()};
  const Cost cost{request->work, request->run, profile.usual_run()};
  const Duration time_left =
      request->deadline == TimePoint::max() ? Duration::max() : request->deadline - now;
  const Duration most = state.options.max_enqueued_time;
  Admission admission = Admit(backlog, cost, time_left, most);
  if (admission == Admission::kLate && profile.MayProbe(now))
    admission = Admit(backlog, cost, Duration::max(), most);
  if (admission == Admission::kFull)
    return Refuse(request, Outcome::kRefusedFull, QueueFullError(state));
  if (admission == Admission::kAccept) return true;
  return Refuse(request, Outcome::kRefusedLate,
                absl::DeadlineExceededError(absl::StrCat(
                    "refused: the deadline is in ", Millis(time_left), " ms, and with ",
                    load.requests, " requests waiting model '", state.options.name, "' may take ",
                    Millis(ExpectedLatency(backlog, cost)), " ms")));
}

// Whether the request may wait; otherwise its outcome and status say why not.
bool MayWait(Queued* request, const EstimatedRun& estimated, TimePoint now, SchedulerState& state)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(state.mutex) {
  const bool is_part = request->whole != nullptr;  // and the whole was admitted
  if (is_part ? state.given_up.load() : state.stopping)
    return Refuse(request, Outcome::kRefusedStopped, state.StoppingError());
  if (const auto& cancel = request->call.cancel; cancel != nullptr && cancel->cancelled())
    return Refuse(request, Outcome::kCancelled, CallerLeftError());
  if (!is_part && !IsAffordable(request, estimated, now, state)) return false;
  const uint64_t principal = request->call.principal;
  if (state.quarantine.Has(principal, now)) request->quarantine = principal;
  return true;
}

// Workers finish what is queued; real time.
bool AwaitIdle(SchedulerState& state, TimePoint until) {
  MutexLock lock(state.mutex);
  while (state.Busy())
    if (!state.idle.WaitUntil(state.mutex, until)) return !state.Busy();
  return true;
}

// Runs under way are cancelled, and what waits is refused.
void GiveUp(SchedulerState& state) {
  std::vector<std::shared_ptr<CancelToken>> runs;
  {
    MutexLock lock(state.mutex);
    state.given_up = true;
    RefuseQueued(state);
    for (int slot = 0; slot < state.slots.size(); ++slot) {
      SlotUse& use = state.slots[slot];
      if (use.abandoned) use.abandoned->Cancel();
      if (use.busy() && use.batch.size() == 1) runs.push_back(use.batch[0]->call.cancel);
    }
  }
  for (const auto& run : runs)
    if (run != nullptr) run->Cancel();  // its listener locks
}

}  // namespace

Scheduler::Scheduler(std::unique_ptr<Executor> executor, Options options)
    : state_(std::move(executor), std::move(options)),
      expiry_(state_),
      workers_(state_),
      large_requests_(state_, [this](std::unique_ptr<Queued> part) { Enqueue(part.release()); }) {
  if (state_.options.threads == 0) return;
  try {
    auto ends = state_.options.end_threads;
    if (ends == nullptr) ends = std::make_shared<EndThreads>();
    state_.completion.Start({ends, &ends->completion});
    expiry_.Start({ends, &ends->expiry});
    workers_.Start();
  } catch (...) {
    Stop();
    throw;
  }
}

Scheduler::~Scheduler() { Stop(); }

void Scheduler::Submit(Request call) {
  Queued* request = nullptr;  // until it is answered
  const absl::Status made = CatchOutOfMemory([&] {
    request = new Queued(std::move(call));
    return absl::OkStatus();
  });
  if (!made.ok()) {
    CountFailed(*call.asked, made);
    return call.complete(made, {});
  }
  const TimePoint now = request->enqueued = state_.Now();
  if (const auto& cancel = request->call.cancel; cancel != nullptr && cancel->cancelled())
    return state_.completion.Answer(request, Outcome::kCancelled, CallerLeftError());
  if (request->deadline == TimePoint::max() && state_.options.default_timeout < Duration::max())
    request->deadline = std::min(now, request->call.arrived) + state_.options.default_timeout;
  if (request->deadline <= now)
    return state_.completion.Answer(request, Outcome::kExpired, ExpiredError());
  const absl::Status bound = CatchOutOfMemory([&]() -> absl::Status {
    FLOE_ASSIGN_OR_RETURN(request->binding, state_.executor->Bind(*request->asked));
    return absl::OkStatus();
  });
  if (!bound.ok()) return state_.completion.Answer(request, Outcome::kFailed, bound);
  if (request->binding.splittable &&
      request->binding.rows > state_.options.limits.MaxRows(request->binding))
    return Split(request);
  if (request->binding.quick && workers_.TryInline(request)) return;
  Enqueue(request);
}

void Scheduler::Enqueue(Queued* request) {
  const EstimatedRun estimated = EstimateRun(*request, state_);
  // Set before the request is queued: afterwards a worker may finish and free it at any moment. A
  // caller that leaves before finds nothing to remove; MayWait looks once more.
  if (const auto& cancel = request->call.cancel; cancel != nullptr)
    cancel->SetListener(request, [this, request] { Cancel(state_, request); });
  bool queued = false, wake_worker = false;
  {
    MutexLock lock(state_.mutex);
    const TimePoint now = state_.Now(), deadline = request->deadline;
    const auto push = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {  // the lock is held
      if (!MayWait(request, estimated, now, state_)) return absl::OkStatus();
      queued = state_.queue.Push(request, now);
      if (!queued) Refuse(request, Outcome::kRefusedFull, QueueFullError(state_));
      return absl::OkStatus();
    };
    if (absl::Status pushed = CatchOutOfMemory(push); !pushed.ok())
      Refuse(request, Outcome::kFailed, std::move(pushed));
    if (queued) expiry_.Wake(deadline);
    wake_worker = state_.waiting_workers > 0 && state_.slots.any_idle();
  }
  if (!queued) return state_.completion.Answer(request, request->outcome, request->status);
  if (wake_worker) state_.work.NotifyOne();
}

// Admits a request of more rows than a run may have.
void Scheduler::Split(Queued* whole) {
  const EstimatedRun estimated = EstimateRun(*whole, state_);
  whole->outcome = Outcome::kFailed;  // unless another is set
  // A caller that leaves before finds nothing to remove; MayWait looks once more.
  if (const auto& cancel = whole->call.cancel; cancel != nullptr)
    cancel->SetListener(whole, [this, whole] { Cancel(state_, whole); });
  const absl::Status status = CatchOutOfMemory([&]() -> absl::Status {
    FLOE_RETURN_IF_ERROR(CheckOutputBytes(*whole));
    MutexLock lock(state_.mutex);
    if (!MayWait(whole, estimated, state_.Now(), state_)) return whole->status;
    if (!state_.queue.AddWhole(whole)) {
      Refuse(whole, Outcome::kRefusedFull, QueueFullError(state_));
      return whole->status;
    }
    expiry_.Wake(whole->deadline);
    return absl::OkStatus();
  });
  if (!status.ok()) return state_.completion.Answer(whole, whole->outcome, status);
  large_requests_.StartWaiting();
}

void Scheduler::Stop() { (void)StopBy(TimePoint::max()); }

bool Scheduler::Idle() const {
  MutexLock lock(state_.mutex);
  return !state_.Busy();
}

bool Scheduler::StopBy(TimePoint deadline) {
  MutexLock stop_lock(stop_mutex_);
  {
    MutexLock lock(state_.mutex);
    state_.stopping = true;
    state_.queue.StopWaiting();
    state_.work.NotifyAll();
  }
  if (state_.options.threads == 0) {
    GiveUp(state_);
    while (state_.completion.Drain()) {
    }
  } else if (deadline < TimePoint::max() && !AwaitIdle(state_, deadline)) {
    GiveUp(state_);
    if (!AwaitIdle(state_, Clock::Steady().Now() + kLastStep)) return false;
  }
  workers_.Join();
  {
    MutexLock lock(state_.mutex);
    while (state_.slots.any_busy()) state_.idle.Wait(state_.mutex);  // on callers' threads
  }
  expiry_.Stop();
  state_.completion.Stop();
  return true;
}

}  // namespace floe::server
