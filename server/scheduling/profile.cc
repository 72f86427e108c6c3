// What runs take, as estimated at load and corrected by the runs since.
#include "server/scheduling/profile.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/budget.h"

namespace floe::server {
namespace {

// The weight of a new observation of a run's time. One run in ten thousand may be ten times slower
// (the machine was busy), and must not make the next hundred look hopeless.
constexpr double kLearningRate = 0.1;

// Requests that are always refused run once in so long, so that their cost is learnt again.
constexpr Duration kProbeEvery = std::chrono::seconds(1);

// The slowest run counts half as much after so long without one as slow.
constexpr Duration kForgetHalf = std::chrono::minutes(10);

// `old` moved towards `seen`, by at most a factor of two at a time.
double Moved(double old, double seen) {
  return old + kLearningRate * (std::min(seen, 10 * old) - old);
}

Duration Ticks(double ticks) { return Duration(static_cast<Duration::rep>(ticks)); }

}  // namespace

Duration CostProfile::Expect(Duration estimated, int64_t rows) const {
  if (estimated > Duration::zero()) return Ticks(static_cast<double>(estimated.count()) * slower_);
  return Ticks(row_ticks_ * static_cast<double>(std::max<int64_t>(rows, 1)));
}

void CostProfile::Learn(Duration estimated, int64_t rows, Duration took) {
  refused_since_ = TimePoint::max();
  const auto ticks = static_cast<double>(took.count());
  run_ticks_ = run_ticks_ == 0 ? ticks : Moved(run_ticks_, ticks);
  if (estimated > Duration::zero()) {
    compared_ = true;
    slower_ = std::max(0.1, Moved(slower_, ticks / static_cast<double>(estimated.count())));
  } else {
    const double of_row = ticks / static_cast<double>(std::max<int64_t>(rows, 1));
    row_ticks_ = row_ticks_ == 0 ? of_row : Moved(row_ticks_, of_row);
  }
}

bool CostProfile::MayProbe(TimePoint now) {
  if (refused_since_ == TimePoint::max()) refused_since_ = now;
  if (now - refused_since_ < kProbeEvery) return false;
  refused_since_ = now;
  return true;
}

CostProfile* CostProfiles::Find(const void* key) {
  const auto profile = std::find_if(profiles_.begin(), profiles_.end(),
                                    [key](const CostProfile& other) { return other.key_ == key; });
  if (profile == profiles_.end()) return nullptr;
  profile->seen_ = ++now_;
  return &*profile;
}

CostProfile& CostProfiles::Of(const Bound& request, const Executor& executor) {
  if (CostProfile* const profile = Find(request.binding.key); profile != nullptr) return *profile;
  std::string name, why;
  // Workers ask too: better a profile without a name than none.
  (void)CatchOutOfMemory([&] {
    name = executor.Describe(request);
    if (request.binding.plan != nullptr) why = request.binding.plan->why_not_batchable();
    return absl::OkStatus();
  });
  if (profiles_.size() < kCostProfiles) {
    profiles_.emplace_back();
  } else {
    const auto oldest = std::min_element(
        profiles_.begin(), profiles_.end(),
        [](const CostProfile& a, const CostProfile& b) { return a.seen_ < b.seen_; });
    others_.Add(oldest->counts);
    *oldest = CostProfile();
    std::swap(*oldest, profiles_.back());
  }
  CostProfile& profile = profiles_.back();
  profile.name_ = std::move(name);
  profile.why_not_batchable_ = std::move(why);
  profile.max_rows_ = request.binding.max_rows;
  profile.estimated_ = request.binding.estimated;
  profile.key_ = request.binding.key;
  profile.keep_ = request.binding.plan;
  profile.seen_ = ++now_;
  return profile;
}

std::vector<ProfileStats> CostProfiles::Stats() const {
  std::vector<ProfileStats> stats;
  for (const CostProfile& profile : profiles_)
    if (profile.counts.batches > 0)
      stats.push_back({profile.name_, profile.counts, profile.why_not_batchable_, profile.max_rows_,
                       profile.estimated_ && profile.compared_ ? profile.slower_ : 0});
  if (others_.batches > 0) stats.push_back({"(others)", others_, "", 0});
  return stats;
}

Duration SlowestRun::At(TimePoint now) const {
  Duration slowest = slowest_;
  for (TimePoint at = since_ + kForgetHalf; at <= now && slowest > least_; at += kForgetHalf)
    slowest = std::max(least_, slowest / 2);
  return slowest;
}

void SlowestRun::Note(Duration took, TimePoint now) {
  if (took < At(now)) return;
  slowest_ = took;
  since_ = now;
}

}  // namespace floe::server
