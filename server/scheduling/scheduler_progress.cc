// Collects what a scheduler did and how its work goes on.
#include "absl/strings/str_cat.h"
#include "server/scheduling/scheduler.h"

namespace floe::server {
namespace {

// "serving_default [4,784], 4 rows, at node 'x' (MatMul)"; empty: the run's requests may be gone.
std::string WhatRuns(const SchedulerState& state, int slot)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(state.mutex) {
  const SlotUse& use = state.slots[slot];
  if (use.batch.empty()) return "";
  const std::string step = state.executor->Doing(slot);
  return absl::StrCat(state.executor->Describe(*use.batch[0]), ", ", use.rows, " rows",
                      step.empty() ? "" : ", at ", step);
}

SchedulerProgress ProgressOf(const SchedulerState& state, TimePoint now)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(state.mutex) {
  SchedulerProgress progress;
  progress.queued = state.queue.load().requests;
  if (const Queued* oldest = state.queue.Oldest(); oldest != nullptr)
    progress.waiting_since =
        oldest->enqueued + (state.stopping ? Duration::zero() : state.options.limits.timeout);
  progress.workers = state.options.workers();
  progress.last_finished = state.last_finished;
  progress.slowest = state.slowest.At(state.Now());
  for (int slot = 0; slot < state.slots.size(); ++slot) {
    const SlotUse& use = state.slots[slot];
    if (!use.busy()) continue;
    SchedulerProgress::Run run{.slot = slot,
                               .started = use.started,
                               .batches = use.batches,
                               .worker = use.worker,
                               .reported = use.reported};
    run.stuck = IsStuck(progress, run, now);
    if (run.stuck) run.what = WhatRuns(state, slot);
    progress.runs.push_back(std::move(run));
  }
  return progress;
}

TimeStats TimesOf(const RecentTimes& times, TimePoint now) {
  return {times.Count(now), times.Quantile(0.5, now), times.Quantile(0.99, now)};
}

}  // namespace

SchedulerProgress Scheduler::Progress() const {
  MutexLock lock(state_.mutex);
  return ProgressOf(state_, state_.Now());
}

std::vector<SchedulerProgress::Run> Scheduler::NewlyStuck(TimePoint now) {
  MutexLock lock(state_.mutex);
  std::vector<SchedulerProgress::Run> stuck;
  for (SchedulerProgress::Run& run : ProgressOf(state_, now).runs) {
    if (run.reported || !run.stuck) continue;
    state_.slots[run.slot].reported = true;
    ++state_.counts.stuck_runs;
    stuck.push_back(std::move(run));
  }
  return stuck;
}

SchedulerStats Scheduler::Counts() const {
  SchedulerStats stats;
  state_.completion.counts().CopyTo(&stats);
  MutexLock lock(state_.mutex);
  static_cast<RunCounts&>(stats) = state_.counts;
  return stats;
}

SchedulerStats Scheduler::Stats() const {
  SchedulerStats stats = Counts();
  stats.estimates = state_.options.estimates;
  MutexLock lock(state_.mutex);
  const TimePoint now = state_.Now();
  stats.profiles = state_.profiles.Stats();
  for (const ProfileStats& profile : stats.profiles) stats.batches.Add(profile.batches);
  const QueueLoad& load = state_.queue.load();
  stats.queued_rows = load.rows;
  stats.queued_bytes = load.bytes;
  if (const Queued* oldest = state_.queue.Oldest(); oldest != nullptr)
    stats.oldest_wait = now - oldest->enqueued;
  stats.queue_wait = TimesOf(state_.queue_waits, now);
  stats.run = TimesOf(state_.run_times, now);
  stats.work = state_.work_counts.Read();
  stats.progress = ProgressOf(state_, now);
  return stats;
}

std::string Scheduler::RunsUnderWay(TimePoint now) const {
  std::string text;
  for (const SchedulerProgress::Run& run : Progress().runs)
    absl::StrAppend(
        &text, text.empty() ? "" : ", ",
        run.worker < 0 ? "a caller's thread"
                       : absl::StrCat("w", run.worker, ":", state_.options.name),
        " for ", std::chrono::duration_cast<std::chrono::seconds>(now - run.started).count(), " s");
  return text;
}

}  // namespace floe::server
