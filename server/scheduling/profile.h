// CostProfile: how batches of like requests were formed, and how long they take, compared with what
// was estimated at load. SlowestRun: how long the slowest took.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "server/executor/executor.h"
#include "server/scheduling/stats.h"

namespace floe::server {

// Cost profiles that a version keeps.
inline constexpr size_t kCostProfiles = 64;

class CostProfile {
 public:
  BatchCounts counts;

  // The expected time of a run of so many rows. `estimated` is what the estimate at load says of
  // it; zero: there is none. Returns zero where nothing is known.
  Duration Expect(Duration estimated, int64_t rows) const;
  // What such a run took.
  void Learn(Duration estimated, int64_t rows, Duration took);
  // Asked when a request would be refused for its expected time. True once for every
  // second (kProbeEvery) in which none ran, so that an expectation that became too high is
  // corrected.
  bool MayProbe(TimePoint now);
  // What a run took of late, of however many rows. Zero: not known.
  Duration usual_run() const { return Duration(static_cast<Duration::rep>(run_ticks_)); }

 private:
  friend class CostProfiles;
  std::string name_, why_not_batchable_;
  int64_t max_rows_ = 0;
  const void* key_ = nullptr;
  std::shared_ptr<const void> keep_;  // keeps the plan alive, so that its address stays its own
  uint64_t seen_ = 0;                 // CostProfiles::now_ when it was last used
  bool estimated_ = false;            // of the shapes that the estimate at load is of
  bool compared_ = false;             // runs with an estimate were learnt from
  double slower_ = 1;                 // than estimated at load, of late
  double row_ticks_ = 0;              // of a row, of late, where there is no estimate
  double run_ticks_ = 0;
  TimePoint refused_since_ = TimePoint::max();  // max(): not refused since the last run
};

// The profiles of a served version, by Binding::key. It keeps kCostProfiles of them. A new
// one takes the place of the least recently used, whose batches count among the others from then
// on. Threading: the caller locks.
class CostProfiles {
 public:
  CostProfiles() { profiles_.reserve(kCostProfiles); }
  CostProfile& Of(const Bound& request, const Executor& executor);
  CostProfile* Find(const void* key);  // null: not kept (any more)
  // Of profiles with batches, by the executor's names for them; no batch is missing from the sum.
  std::vector<ProfileStats> Stats() const;

 private:
  std::vector<CostProfile> profiles_;
  BatchCounts others_;  // of those that went
  uint64_t now_ = 0;    // look-ups so far
};

// The slowest of the good runs, for a full batch. It fades: one slow run does not hide stuck ones
// for ever. Threading: the caller locks.
class SlowestRun {
 public:
  SlowestRun(Duration least, TimePoint now) : least_(least), slowest_(least), since_(now) {}
  void Note(Duration took, TimePoint now);
  Duration At(TimePoint now) const;

 private:
  const Duration least_;
  Duration slowest_;
  TimePoint since_;
};

}  // namespace floe::server
