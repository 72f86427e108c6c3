#include "server/batching/bucket_book.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/budget.h"

namespace floe::server {
namespace {

// Of a new observation. One run in ten thousand may be ten times slower (the machine was busy), and
// must not make the next hundred look hopeless.
constexpr double kWeight = 0.1;

// `old` moved towards `seen`, by at most a factor of two at a time.
double Moved(double old, double seen) { return old + kWeight * (std::min(seen, 10 * old) - old); }

Duration Ticks(double ticks) { return Duration(static_cast<Duration::rep>(ticks)); }

}  // namespace

Duration BucketBook::Kind::Expect(Duration measured, int64_t rows) const {
  if (measured > Duration::zero()) return Ticks(static_cast<double>(measured.count()) * slower);
  return Ticks(row_ticks * static_cast<double>(std::max<int64_t>(rows, 1)));
}

void BucketBook::Kind::Learn(Duration measured, int64_t rows, Duration took) {
  refused_since = TimePoint::max();
  const auto ticks = static_cast<double>(took.count());
  run_ticks = run_ticks == 0 ? ticks : Moved(run_ticks, ticks);
  if (measured > Duration::zero()) {
    slower = std::max(0.1, Moved(slower, ticks / static_cast<double>(measured.count())));
  } else {
    const double of_row = ticks / static_cast<double>(std::max<int64_t>(rows, 1));
    row_ticks = row_ticks == 0 ? of_row : Moved(row_ticks, of_row);
  }
}

bool BucketBook::Kind::MayProbe(TimePoint now) {
  if (refused_since == TimePoint::max()) refused_since = now;
  if (now - refused_since < kProbeEvery) return false;
  refused_since = now;
  return true;
}

BucketBook::Kind* BucketBook::Find(const void* key) {
  const auto kind = std::find_if(kinds_.begin(), kinds_.end(),
                                 [key](const Kind& other) { return other.key == key; });
  if (kind == kinds_.end()) return nullptr;
  kind->seen = ++now_;
  return &*kind;
}

BucketBook::Kind& BucketBook::Of(const Task& task, const BatchRunner& runner) {
  if (Kind* const kind = Find(task.key); kind != nullptr) return *kind;
  std::string name;
  // Workers ask too: better a kind without a name than none.
  (void)CatchOutOfMemory([&] {
    name = runner.Describe(task);
    return absl::OkStatus();
  });
  if (kinds_.size() < kMaxKinds) {
    kinds_.emplace_back();
  } else {
    const auto oldest = std::min_element(
        kinds_.begin(), kinds_.end(), [](const Kind& a, const Kind& b) { return a.seen < b.seen; });
    others_.Add(oldest->counts);
    *oldest = Kind();
    std::swap(*oldest, kinds_.back());
  }
  Kind& kind = kinds_.back();
  kind.name = std::move(name);
  kind.key = task.key;
  kind.keep = task.plan;
  kind.seen = ++now_;
  return kind;
}

std::vector<std::pair<std::string, BatchCounts>> BucketBook::Counts() const {
  std::vector<std::pair<std::string, BatchCounts>> counts;
  for (const Kind& kind : kinds_)
    if (kind.counts.batches > 0) counts.emplace_back(kind.name, kind.counts);
  if (others_.batches > 0) counts.emplace_back("(others)", others_);
  return counts;
}

}  // namespace floe::server
