// Counts, the rule by which a run is stuck, and summaries for the log.
#include "server/scheduling/stats.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/budget.h"

namespace floe::server {
namespace {

using Count = std::pair<const char*, uint64_t>;

// "3 idle, 1 full"
std::string Listed(const std::vector<Count>& counts) {
  std::vector<std::string> words;
  for (const auto& [name, count] : counts)
    if (count > 0) words.push_back(absl::StrCat(count, " ", name));
  return absl::StrJoin(words, ", ");
}

double Mean(uint64_t sum, uint64_t count) {
  return static_cast<double>(sum) / static_cast<double>(count);
}

std::string Formed(const BatchCounts& batches, const std::vector<Count>& how) {
  std::string text =
      absl::StrFormat("%d batches of %.1f requests, %.1f rows", batches.batches,
                      Mean(batches.requests, batches.batches), Mean(batches.rows, batches.batches));
  if (const std::string listed = Listed(how); !listed.empty()) absl::StrAppend(&text, ", ", listed);
  std::vector<Count> closed;
  closed.reserve(kBatchCloses);
  for (int close = 0; close < kBatchCloses; ++close)
    closed.emplace_back(BatchCloseName(static_cast<BatchClose>(close)), batches.closed[close]);
  return absl::StrCat(text, "; closed: ", Listed(closed));
}

// A run is stuck after so long, or after so many times the slowest run.
constexpr Duration kStuckAfter = std::chrono::seconds(10);
constexpr int kStuckTimes = 20;

Duration StuckAfter(const SchedulerProgress& progress, double batches) {
  const auto usual = std::chrono::duration_cast<Duration>(kStuckTimes * batches * progress.slowest);
  return std::max(kStuckAfter, usual);
}

}  // namespace

void RunsByRows::Add(int64_t rows, double seconds) {
  size_t i = 0;
  while (i < used_ && runs_[i].rows != rows) ++i;
  if (i == kMost) return;
  used_ = std::max(used_, i + 1);
  runs_[i].rows = rows;
  ++runs_[i].count;
  runs_[i].seconds += seconds;
}

std::vector<RunsByRows::Runs> RunsByRows::Read() const {
  std::vector<Runs> sorted(runs_.begin(), runs_.begin() + static_cast<ptrdiff_t>(used_));
  std::sort(sorted.begin(), sorted.end(),
            [](const Runs& a, const Runs& b) { return a.rows < b.rows; });
  return sorted;
}

size_t WorkCounts::Find(const Inference& asked) {
  size_t place = 1;
  while (place < all_.size() && all_[place].signature != asked.signature) ++place;
  if (place < all_.size()) return place;
  const absl::Status made = CatchOutOfMemory([&] {
    SignatureWork work;
    work.signature = asked.signature;
    if (asked.signature != nullptr) work.name = asked.signature->def().name;
    all_.push_back(std::move(work));
    return absl::OkStatus();
  });
  return made.ok() ? place : 0;
}

std::vector<SignatureWork> WorkCounts::Read() const {
  std::vector<SignatureWork> all(all_.begin() + 1, all_.end());
  std::sort(all.begin(), all.end(),
            [](const SignatureWork& a, const SignatureWork& b) { return a.name < b.name; });
  return all;
}

void BatchCounts::Add(const BatchCounts& other) {
  batches += other.batches;
  requests += other.requests;
  rows += other.rows;
  padded_rows += other.padded_rows;
  for (size_t i = 0; i < closed.size(); ++i) closed[i] += other.closed[i];
}

bool IsStuck(const SchedulerProgress& progress, const SchedulerProgress::Run& run, TimePoint now) {
  return now - run.started > StuckAfter(progress, run.batches);
}

bool IsStuck(const SchedulerProgress& progress, TimePoint now) {
  TimePoint oldest_run = TimePoint::max();
  double largest = 1;
  int stuck = 0;
  for (const SchedulerProgress::Run& run : progress.runs) {
    oldest_run = std::min(oldest_run, run.started);
    largest = std::max(largest, run.batches);
    stuck += IsStuck(progress, run, now) ? 1 : 0;
  }
  const auto nothing_came_of = [&](TimePoint since) {
    return since < now &&
           now - std::max(since, progress.last_finished) > StuckAfter(progress, largest);
  };
  return nothing_came_of(progress.waiting_since) ||
         (stuck >= progress.workers && nothing_came_of(oldest_run));
}

std::string Summary(const SchedulerStats& stats) {
  constexpr const char* kNames[kOutcomes] = {
      "answered", "failed",   "refused for a full queue", "refused late", "refused at the end",
      "expired",  "cancelled"};
  std::vector<Count> outcomes;
  for (size_t i = 0; i < kOutcomes; ++i) outcomes.emplace_back(kNames[i], stats.outcomes[i]);
  std::string text = Listed(outcomes);
  if (stats.batches.batches == 0) return text;
  return absl::StrCat(text, "; ",
                      Formed(stats.batches, {{"padding rows", stats.batches.padded_rows},
                                             {"inline", stats.inline_runs},
                                             {"run again in halves", stats.reruns},
                                             {"stuck", stats.stuck_runs}}));
}

std::string Summary(const BatchCounts& counts) {
  return Formed(counts, {{"padding rows", counts.padded_rows}});
}

}  // namespace floe::server
