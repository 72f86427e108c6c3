// CostProfile: what is known of a kind of request: how its batches were formed, and how long they
// take as against what was measured at load.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "server/executor/executor.h"
#include "server/scheduling/stats.h"

namespace floe::server {

class CostProfile {
 public:
  BatchCounts counts;

  // What a run of so many rows is expected to take, given what the measurement at load says
  // (zero: there is none). Zero: not known.
  Duration Expect(Duration measured, int64_t rows) const;
  // What such a run took.
  void Learn(Duration measured, int64_t rows, Duration took);
  // Asked when a request of the kind would be refused for what its run is expected to take: true
  // once for every tuning::kProbeEvery in which none ran, so that an expectation that became too
  // high is learnt again.
  bool MayProbe(TimePoint now);
  // What a run took of late, of however many rows. Zero: not known.
  Duration usual_run() const { return Duration(static_cast<Duration::rep>(run_ticks_)); }

 private:
  friend class ProfileBook;
  std::string name_, why_not_batchable_;
  int64_t max_rows_ = 0;
  const void* key_ = nullptr;
  std::shared_ptr<const void> keep_;  // keeps the key from being another's
  uint64_t seen_ = 0;
  double slower_ = 1;     // than measured at load, of late
  double row_ticks_ = 0;  // of a row, of late, where nothing was measured
  double run_ticks_ = 0;
  TimePoint refused_since_ = TimePoint::max();  // max(): not refused since the last run
};

// The profiles of a served version. Requests of one key are one kind. The book holds so many at a
// time; one that was not seen for longest makes room for a new one, and is counted among the others
// from then on. Threading: the caller locks.
class ProfileBook {
 public:
  static constexpr size_t kMaxKinds = 64;

  ProfileBook() { kinds_.reserve(kMaxKinds); }
  CostProfile& Of(const Request& request, const Executor& executor);
  CostProfile* Find(const void* key);  // null: not in the book (any more)
  // Kinds that had batches, by the executor's names for them; none is missing from the sum.
  std::vector<KindStats> Kinds() const;

 private:
  std::vector<CostProfile> kinds_;
  BatchCounts others_;  // of kinds that made room
  uint64_t now_ = 0;    // look-ups so far
};

}  // namespace floe::server
