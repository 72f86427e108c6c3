// What a scheduler did so far, and whether its work goes on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "server/scheduling/queue.h"

namespace floe::server {

// How the work goes on, for the health probe.
struct SchedulerProgress {
  struct Run {
    int slot = 0;
    TimePoint started;
    double batches = 1;     // its rows, in batches; at least 1
    bool reported = false;  // Scheduler::NewlyStuck named it
    std::string what;       // of those NewlyStuck names: signature, shapes, rows and step
  };
  size_t queued = 0;
  TimePoint waiting_since = TimePoint::max();  // when the oldest queued request was due to run
  std::vector<Run> runs;                       // under way
  int workers = 1;                             // that can be
  TimePoint last_finished = TimePoint::min();
  Duration slowest =
      Duration::zero();  // of good runs, per as many rows as a batch may have; old ones fade
};
// Under way for longer than max(10 s, 20 x the slowest run). A run of more rows than a batch may
// take as many times longer.
bool IsStuck(const SchedulerProgress& progress, const SchedulerProgress::Run& run, TimePoint now);
// No run finished for that long although requests were due all that time, or every worker is in a
// stuck run.
bool IsStuck(const SchedulerProgress& progress, TimePoint now);

inline constexpr size_t kStatusCodes = 17;
using StatusCounts = std::array<uint64_t, kStatusCodes>;  // by absl::StatusCode

// How batches were formed.
struct BatchCounts {
  uint64_t batches = 0;
  uint64_t requests = 0;  // each part of a large one counts
  uint64_t rows = 0;
  uint64_t padded_rows = 0;                     // computed beyond those
  std::array<uint64_t, kBatchCloses> closed{};  // by BatchClose

  void Add(const BatchCounts& other);
};

// Of the requests of one signature and one set of non-batch dimensions.
struct KindStats {
  std::string name;
  BatchCounts batches;
  std::string why_not_batchable;  // names the node; empty: batchable
  int64_t max_rows = 0;           // of one run; 0: not known
};

// What the warm-up measured of a signature.
struct MeasuredSignature {
  std::string name;
  int64_t max_rows = 0;           // chosen for a batch; 0: the configuration's
  double row_micros = 0;          // a run of one row
  std::string why_not_batchable;  // empty: batchable
};

struct TimeStats {
  uint64_t count = 0;  // of the last one to two minutes
  Duration p50 = Duration::zero(), p99 = Duration::zero();
};

// What happened to the requests so far.
struct SchedulerStats {
  uint64_t answered = 0;         // with outputs
  uint64_t failed = 0;           // by the model, or as Bind said
  uint64_t refused_full = 0;     // Options::full_status
  uint64_t refused_late = 0;     // DEADLINE_EXCEEDED without having waited
  uint64_t refused_stopped = 0;  // UNAVAILABLE
  uint64_t expired = 0;          // DEADLINE_EXCEEDED in the queue or in a run
  uint64_t cancelled = 0;
  uint64_t inline_runs = 0;  // on the thread that brought the request
  uint64_t reruns = 0;       // batches that failed and were run again in halves
  uint64_t stuck_runs = 0;   // that NewlyStuck named
  BatchCounts batches;       // of all kinds of requests
  std::vector<KindStats> kinds;
  StatusCounts by_code{};  // of what was answered, refused or failed
  std::string last_internal_error;
  size_t queued_requests = 0, queued_bytes = 0;
  int64_t queued_rows = 0;
  Duration oldest_wait = Duration::zero();
  TimeStats queue_wait, run;
  int workers = 0;
  std::vector<MeasuredSignature> measured;
  std::vector<std::pair<Duration, std::string>> stuck;  // since when, and what
};
// For a log: "4 batches of 3.0 requests, 3.5 rows; closed: 3 idle, 1 full".
std::string Summary(const BatchCounts& counts);
// For a log: "12 answered, 3 refused late; 4 batches of 3.0 requests, 3.5 rows; closed: 3 idle, 1
// full". What did not happen is left out; empty when nothing was asked.
std::string Summary(const SchedulerStats& stats);

}  // namespace floe::server
