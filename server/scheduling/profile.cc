// What runs of a kind of request take, as measured at load and learnt since.
#include "server/scheduling/profile.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/budget.h"
#include "server/scheduling/tuning.h"

namespace floe::server {
namespace {

// `old` moved towards `seen`, by at most a factor of two at a time.
double Moved(double old, double seen) {
  return old + tuning::kLearningRate * (std::min(seen, 10 * old) - old);
}

Duration Ticks(double ticks) { return Duration(static_cast<Duration::rep>(ticks)); }

}  // namespace

Duration CostProfile::Expect(Duration measured, int64_t rows) const {
  if (measured > Duration::zero()) return Ticks(static_cast<double>(measured.count()) * slower_);
  return Ticks(row_ticks_ * static_cast<double>(std::max<int64_t>(rows, 1)));
}

void CostProfile::Learn(Duration measured, int64_t rows, Duration took) {
  refused_since_ = TimePoint::max();
  const auto ticks = static_cast<double>(took.count());
  run_ticks_ = run_ticks_ == 0 ? ticks : Moved(run_ticks_, ticks);
  if (measured > Duration::zero()) {
    slower_ = std::max(0.1, Moved(slower_, ticks / static_cast<double>(measured.count())));
  } else {
    const double of_row = ticks / static_cast<double>(std::max<int64_t>(rows, 1));
    row_ticks_ = row_ticks_ == 0 ? of_row : Moved(row_ticks_, of_row);
  }
}

bool CostProfile::MayProbe(TimePoint now) {
  if (refused_since_ == TimePoint::max()) refused_since_ = now;
  if (now - refused_since_ < tuning::kProbeEvery) return false;
  refused_since_ = now;
  return true;
}

CostProfile* ProfileBook::Find(const void* key) {
  const auto kind = std::find_if(kinds_.begin(), kinds_.end(),
                                 [key](const CostProfile& other) { return other.key_ == key; });
  if (kind == kinds_.end()) return nullptr;
  kind->seen_ = ++now_;
  return &*kind;
}

CostProfile& ProfileBook::Of(const Request& request, const Executor& executor) {
  if (CostProfile* const kind = Find(request.binding.key); kind != nullptr) return *kind;
  std::string name, why;
  // Workers ask too: better a kind without a name than none.
  (void)CatchOutOfMemory([&] {
    name = executor.Describe(request);
    if (request.binding.plan != nullptr) why = request.binding.plan->why_not_batchable();
    return absl::OkStatus();
  });
  if (kinds_.size() < kMaxKinds) {
    kinds_.emplace_back();
  } else {
    const auto oldest = std::min_element(
        kinds_.begin(), kinds_.end(),
        [](const CostProfile& a, const CostProfile& b) { return a.seen_ < b.seen_; });
    others_.Add(oldest->counts);
    *oldest = CostProfile();
    std::swap(*oldest, kinds_.back());
  }
  CostProfile& kind = kinds_.back();
  kind.name_ = std::move(name);
  kind.why_not_batchable_ = std::move(why);
  kind.max_rows_ = request.binding.max_rows;
  kind.key_ = request.binding.key;
  kind.keep_ = request.binding.plan;
  kind.seen_ = ++now_;
  return kind;
}

std::vector<KindStats> ProfileBook::Kinds() const {
  std::vector<KindStats> kinds;
  for (const CostProfile& kind : kinds_)
    if (kind.counts.batches > 0)
      kinds.push_back({kind.name_, kind.counts, kind.why_not_batchable_, kind.max_rows_});
  if (others_.batches > 0) kinds.push_back({"(others)", others_, "", 0});
  return kinds;
}

}  // namespace floe::server
