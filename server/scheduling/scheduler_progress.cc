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
    SlotUse& use = state_.slots[run.slot];
    use.reported = true;
    ++state_.stuck_runs;
    stuck.push_back(run);
    if (use.batch.empty()) continue;  // its requests may be gone
    const std::string step = state_.executor->Doing(run.slot);
    stuck.back().what = absl::StrCat(state_.executor->Describe(*use.batch[0]), ", ", use.rows,
                                     " rows", step.empty() ? "" : ", at ", step);
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
  MutexLock lock(state_.mutex);
  stats.inline_runs = state_.inline_runs;
  stats.reruns = state_.reruns;
  stats.stuck_runs = state_.stuck_runs;
  stats.kinds = state_.profiles.Counts();
  for (const auto& [name, counts] : stats.kinds) stats.batches.Add(counts);
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
