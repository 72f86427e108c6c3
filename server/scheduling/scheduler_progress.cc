// What the scheduler says of itself.
#include "absl/strings/str_cat.h"
#include "server/scheduling/scheduler.h"

namespace floe::server {
namespace {

SchedulerProgress ProgressOf(const SchedulerState& state)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(state.mutex) {
  SchedulerProgress progress;
  progress.queued = state.queue.load().requests + state.large.load().requests;
  if (const Request* oldest = state.queue.Oldest(); oldest != nullptr)
    progress.waiting_since =
        oldest->enqueued + (state.stopping ? Duration::zero() : state.options.limits.timeout);
  for (int slot = 0; slot < state.slots.size(); ++slot) {
    const SlotUse& use = state.slots[slot];
    if (use.busy()) progress.runs.push_back({slot, use.started, use.batches, use.reported, {}});
  }
  progress.workers = state.options.workers();
  progress.last_finished = state.last_finished;
  progress.slowest = state.slowest.At(state.Now());
  return progress;
}

// "serving_default [4,784], 4 rows, at node 'x' (MatMul)"; empty: the run's requests may be gone.
std::string WhatRuns(const SchedulerState& state, int slot)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(state.mutex) {
  const SlotUse& use = state.slots[slot];
  if (use.batch.empty()) return "";
  const std::string step = state.executor->Doing(slot);
  return absl::StrCat(state.executor->Describe(*use.batch[0]), ", ", use.rows, " rows",
                      step.empty() ? "" : ", at ", step);
}

TimeStats TimesOf(const RecentTimes& times, TimePoint now) {
  return {times.Count(now), times.Quantile(0.5, now), times.Quantile(0.99, now)};
}

}  // namespace

SchedulerProgress Scheduler::Progress() const {
  MutexLock lock(state_.mutex);
  return ProgressOf(state_);
}

std::vector<SchedulerProgress::Run> Scheduler::NewlyStuck(TimePoint now) {
  MutexLock lock(state_.mutex);
  const SchedulerProgress progress = ProgressOf(state_);
  std::vector<SchedulerProgress::Run> stuck;
  for (const SchedulerProgress::Run& run : progress.runs) {
    if (run.reported || !IsStuck(progress, run, now)) continue;
    state_.slots[run.slot].reported = true;
    ++state_.stuck_runs;
    stuck.push_back(run);
    stuck.back().what = WhatRuns(state_, run.slot);
  }
  return stuck;
}

SchedulerStats Scheduler::Stats() const {
  SchedulerStats stats;
  stats.answered = completion_.count(Outcome::kAnswered);
  stats.failed = completion_.count(Outcome::kFailed);
  stats.refused_full = completion_.count(Outcome::kRefusedFull);
  stats.refused_late = completion_.count(Outcome::kRefusedLate);
  stats.refused_stopped = completion_.count(Outcome::kRefusedStopped);
  stats.expired = completion_.count(Outcome::kExpired);
  stats.cancelled = completion_.count(Outcome::kCancelled);
  stats.by_code = completion_.status_counts();
  stats.last_internal_error = completion_.last_internal_error();
  stats.workers = state_.options.workers();
  stats.measured = state_.options.measured;
  MutexLock lock(state_.mutex);
  const TimePoint now = state_.Now();
  stats.inline_runs = state_.inline_runs;
  stats.reruns = state_.reruns;
  stats.stuck_runs = state_.stuck_runs;
  stats.kinds = state_.profiles.Kinds();
  for (const KindStats& kind : stats.kinds) stats.batches.Add(kind.batches);
  const QueueLoad& load = state_.queue.load();
  stats.queued_requests = load.requests;
  stats.queued_rows = load.rows;
  stats.queued_bytes = load.bytes;
  if (const Request* oldest = state_.queue.Oldest(); oldest != nullptr)
    stats.oldest_wait = now - oldest->enqueued;
  stats.queue_wait = TimesOf(state_.queue_waits, now);
  stats.run = TimesOf(state_.run_times, now);
  const SchedulerProgress progress = ProgressOf(state_);
  for (const SchedulerProgress::Run& run : progress.runs)
    if (IsStuck(progress, run, now))
      stats.stuck.emplace_back(now - run.started, WhatRuns(state_, run.slot));
  return stats;
}

std::string Scheduler::RunsUnderWay(TimePoint now) const {
  std::string text;
  MutexLock lock(state_.mutex);
  for (int slot = 0; slot < state_.slots.size(); ++slot) {
    const SlotUse& use = state_.slots[slot];
    if (!use.busy()) continue;
    absl::StrAppend(
        &text, text.empty() ? "" : ", ",
        use.worker < 0 ? "a caller's thread"
                       : absl::StrCat("w", use.worker, ":", state_.options.name),
        " for ", std::chrono::duration_cast<std::chrono::seconds>(now - use.started).count(), " s");
  }
  return text;
}

}  // namespace floe::server
